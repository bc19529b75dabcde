"""The metrics of schedules."""

from django.db.models import Min

from monitoring.scrape import ReadOnce, Sample, Shared
from schedules.models import Firing, Schedule
from store import stats as store_stats


def _failing(_: ReadOnce) -> list[Sample]:
    return [((), Schedule.objects.filter(failure__isnull=False).count())]


def overdue_seconds() -> float:
    """For how long the oldest time has been due for which no message is stored; 0 without one."""
    waiting = Schedule.objects.filter(paused=False).aggregate(at=Min("next_at"))["at"]
    decided = Firing.objects.aggregate(at=Min("fire_at"))["at"]
    now = store_stats.now()
    return max((max(0.0, (now - at).total_seconds()) for at in (waiting, decided) if at is not None), default=0.0)


METRICS = (
    Shared("mqbroker_schedules_failing", "Schedules whose latest message was refused.", _failing),
    Shared(
        "mqbroker_schedules_overdue_seconds",
        "For how long the oldest time of a schedule has been due whose message is not stored; 0 without one.",
        lambda _: [((), overdue_seconds())],
    ),
)
