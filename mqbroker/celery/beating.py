"""The file by which beat's health check sees that beat is working."""

from pathlib import Path

SUFFIX = ".alive"


def touched(schedule: Path) -> Path:
    """The file that beat touches in each round. It lies beside beat's schedule file."""
    return schedule.with_name(schedule.name + SUFFIX)
