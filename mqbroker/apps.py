"""The wiring as a Django app."""

import logging

from django.apps import AppConfig


class MqbrokerConfig(AppConfig):
    """The HTTP API and the management commands."""

    name = "mqbroker"

    def ready(self) -> None:
        # mqbroker.errors imports models of Django's apps, which are ready only now.
        from mqbroker.errors import NamesRequest

        logging.getLogger("django.request").addFilter(NamesRequest())
