"""Schedules as a Django app."""

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    """Messages at the times of a cron expression."""

    name = "scheduling.cron"
    label = "schedules"
