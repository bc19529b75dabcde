"""Names the wiring's Django app."""

from django.apps import AppConfig


class MqbrokerConfig(AppConfig):
    """API keys and the management commands."""

    name = "mqbroker"
