"""The work of each web process for outboxes: it runs a drain for each, and ends the drains before its other parts."""

from store.process import runtime
from transactions.outboxes.drain import Drains


async def keep(_late_seconds: float) -> None:
    """Starts and ends drains, so that each registered outbox has one in this process."""
    await runtime.control(Drains).keep()


WORKS = (("outboxes", keep),)
CLOSED_FIRST = (Drains,)
