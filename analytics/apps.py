"""Names the app: Reports"""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    """the Spark export.:The export of the tables for analytics."""

    name = "analytics"
