"""Names the app: When a message becomes visible."""

from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """Delay levels, timers and the one door to visibility."""

    name = "scheduling"
