"""The file by which beat's health check sees that beat goes round."""

from pathlib import Path

SUFFIX = ".alive"


def touched(schedule: Path) -> Path:
    """The file that beat touches each time it goes round, beside the schedule that it keeps."""
    return schedule.with_name(schedule.name + SUFFIX)
