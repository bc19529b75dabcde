"""Monitoring as a Django app."""

from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    """What the broker does, measured: metrics, what needs attention, and figures kept by the minute."""

    name = "console.monitoring"
