"""The work of each web process for outboxes: a drain for each, which ends before the process's other parts."""

from store.process import runtime
from transactions.outboxes.drain import Drains


async def keep(_late_seconds: float) -> None:
    """Starts and ends drains, so that each registered outbox has one in this process."""
    await runtime.control(Drains).keep()


WORKS = (("outboxes", keep),)
CLOSED_FIRST = (Drains,)
