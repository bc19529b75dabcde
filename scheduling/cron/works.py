"""The work for schedules that each web process does if no beat or worker does the work in time."""

from scheduling.cron import firing


async def fire(late_seconds: float) -> None:
    """Fires the schedules that have been due for `late_seconds`."""
    await firing.run(late_seconds=late_seconds)


WORKS = (("schedules", fire),)
