"""Beat sleeps until a task is due."""

from pathlib import Path

from mqbroker.celery.app import app
from mqbroker.celery.beat import PatientScheduler


def test_beat_sleeps_also_through_the_last_moment_before_a_task_is_due(tmp_path: Path) -> None:
    scheduler = PatientScheduler(app, schedule_filename=str(tmp_path / "schedule"))

    assert [scheduler.adjust(seconds) for seconds in (2.0, 0.005, 0)] == [2.0, 0.005, 0]
