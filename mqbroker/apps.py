"""The wiring as a Django app."""

import logging

from django.apps import AppConfig


class MqbrokerConfig(AppConfig):
    """The HTTP API and the management commands."""

    name = "mqbroker"

    def ready(self) -> None:
        # These import models of Django's apps, which are ready only now. The second one registers a check.
        from mqbroker import sealed_secrets  # noqa: F401  # for its registration
        from mqbroker.errors import NamesRequest

        logging.getLogger("django.request").addFilter(NamesRequest())
