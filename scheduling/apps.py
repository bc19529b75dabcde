"""The Django app of scheduling."""

from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """Plain sends, delays, releases and recalls."""

    name = "scheduling"
