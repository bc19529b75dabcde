"""The metrics and findings of schedules."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Min

from console.monitoring.attention import LATE, SHOWN, Attention
from console.monitoring.scrape import ReadOnce, Sample, Shared
from scheduling.cron.models import Firing, Schedule
from store import stats as store_stats


def _failing(_: ReadOnce) -> list[Sample]:
    return [((), Schedule.objects.filter(failure__isnull=False).count())]


def overdue_seconds() -> float:
    """The seconds for which the message of the oldest due time has not been stored; 0 if no due message waits.

    Schedules that fail are left out, because their messages do not wait for a process.
    """
    failing = Schedule.objects.filter(failure__isnull=False)
    waiting = Schedule.objects.filter(paused=False, failure__isnull=True).aggregate(at=Min("next_at"))["at"]
    decided = Firing.objects.exclude(schedule_id__in=failing.values("id")).aggregate(at=Min("fire_at"))["at"]
    now = store_stats.now()
    return max((max(0.0, (now - at).total_seconds()) for at in (waiting, decided) if at is not None), default=0.0)


def ailing(_: datetime) -> Iterator[Attention]:
    """Schedules whose messages are refused, and due times that no process fires."""
    for schedule in Schedule.objects.filter(failure__isnull=False).order_by("failed_at")[:SHOWN]:
        what = f"The messages of the schedule {schedule.name} are not sent"
        mend = f"mend its topic, or PUT /v1/schedules/{schedule.name} with another message"
        yield Attention(True, what, str(schedule.failure), "schedules", mend, since=schedule.failed_at)
    if (seconds := overdue_seconds()) > LATE.total_seconds():
        what = f"Times of schedules have been due for {seconds:,.0f} s"
        why = "no beat, worker or web process fires them"
        yield Attention(True, what, why, "schedules", "start beat and a worker, or a web process")


METRICS = (
    Shared("mqbroker_schedules_failing", "Schedules whose latest message was refused or still waits.", _failing),
    Shared(
        "mqbroker_schedules_overdue_seconds",
        "How long the oldest firing without a message has been due, of schedules that do not fail; 0: there is none.",
        lambda _: [((), overdue_seconds())],
    ),
)
FINDINGS = (ailing,)
