"""The export as a Django app."""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    """The export of the broker's tables to Parquet."""

    name = "analytics"
