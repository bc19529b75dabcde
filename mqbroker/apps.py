"""Names the wiring's Django app."""

import logging

from django.apps import AppConfig


class MqbrokerConfig(AppConfig):
    """API keys and the management commands."""

    name = "mqbroker"

    def ready(self) -> None:
        # Django's apps must be ready before its errors can be named.
        from mqbroker.errors import NamesRequest

        logging.getLogger("django.request").addFilter(NamesRequest())
