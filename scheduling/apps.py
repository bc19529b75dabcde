"""The app, for Django."""

from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """Plain sends, delays, releases and recalls."""

    name = "scheduling"
