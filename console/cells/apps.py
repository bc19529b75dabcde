"""The cells as a Django app."""

from django.apps import AppConfig


class CellsConfig(AppConfig):
    """Cells, and the moves of topics between them."""

    name = "console.cells"
