"""The Django app of scheduling."""

from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """Sends without a transaction, delays, releases and recalls."""

    name = "scheduling"
