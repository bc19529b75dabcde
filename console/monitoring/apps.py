"""Monitoring as a Django app."""

from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    """Metrics, findings that need attention, and numbers of the broker by the minute."""

    name = "console.monitoring"
