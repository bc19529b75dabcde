"""Beat sleeps until a task is due, and a signal ends it in the middle of sending one, too."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from celery.beat import Service

from mqbroker.celery.app import app
from mqbroker.celery.beat import BeatByName, PatientScheduler
from mqbroker.embedded.commands import ROOT


def test_beat_sleeps_also_through_the_last_moment_before_a_task_is_due(tmp_path: Path) -> None:
    scheduler = PatientScheduler(app, schedule_filename=str(tmp_path / "schedule"))

    assert [scheduler.adjust(seconds) for seconds in (2.0, 0.005, 0)] == [2.0, 0.005, 0]


def test_a_signal_leaves_what_a_task_that_is_being_sent_needs(tmp_path: Path) -> None:
    service = Service(app, scheduler_cls=PatientScheduler, schedule_filename=str(tmp_path / "schedule"))
    tasks = set(service.scheduler.schedule)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        BeatByName(app=app).install_sync_handler(service)
        for number in before:
            with pytest.raises(SystemExit):
                signal.raise_signal(number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert set(service.scheduler.schedule) == tasks


def test_beat_starts_without_djangos_http_and_models() -> None:
    looks = "import sys, mqbroker.celery.beat; print({'django.http', 'django.db.models'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", looks], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
