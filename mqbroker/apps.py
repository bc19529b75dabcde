"""The wiring as a Django app."""

import logging

from django.apps import AppConfig

from mqbroker import logs


class MqbrokerConfig(AppConfig):
    """The HTTP API and the management commands."""

    name = "mqbroker"

    def ready(self) -> None:
        # Imported here, because it imports models, which are ready only now; it registers a check.
        from mqbroker.process import sealed_secrets  # noqa: F401  # for its registration

        logging.getLogger("django.request").addFilter(logs.NamesRequest())
