"""Renewals: extends the deliveries of a push consumer while its stream is open, until it acks or nacks them.

A push consumer does not set an invisible time but expects the broker to extend its deliveries. Each is extended at half
of the default time, for at most LONGEST_SECONDS, while the consumer's key may consume. A delivery that another process
has settled is not found, and dropped.
"""

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import Coroutine, Iterable
from itertools import takewhile
from typing import Any

import structlog

from delivery.receipts import settling
from delivery.receive import returns
from mqbroker.api.requests import begin_request
from mqbroker.errors import refusal_of
from mqbroker.rocketmq.call import Client
from mqbroker.rocketmq.streams import streams
from store.process import runtime
from store.process.configuration import setting
from store.process.shares import Shares

logger = structlog.stdlib.get_logger(__name__)

LONGEST_SECONDS = 3 * 3600.0
LOOK_SECONDS = 1.0
# The maximum number of deliveries extended per process, of which one key may have five eighths; about 500 bytes each.
# Messages of further deliveries are delivered again after the default invisible time.
MAX_RENEWED = 100_000
MAX_HANDLES = 500


class Renewal:
    """A delivery that is extended: its client, its group, and the time.monotonic() of the next and of the last
    extension.
    """

    __slots__ = ("client", "due_at", "group", "until")

    def __init__(self, client: Client, group: str) -> None:
        now = time.monotonic()
        self.client = client
        self.group = group
        self.due_at = now + half_time()
        self.until = now + LONGEST_SECONDS


class Renewals:
    """The deliveries that this process extends, by receipt handle."""

    def __init__(self) -> None:
        # Sorted by due time without a sort: all deliveries have the same interval, so new ones come last.
        self._by_handle: OrderedDict[str, Renewal] = OrderedDict()
        self._of_client: defaultdict[Client, dict[str, None]] = defaultdict(dict)
        self._shares = Shares(MAX_RENEWED)
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to extend deliveries in the running event loop."""
        self._looking = asyncio.create_task(self._look_forever(), name="renewals")

    async def close(self) -> None:
        """Stops extending: unsettled messages are delivered again after their invisible time."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def begin(self, client: Client, group: str, handles: Iterable[str]) -> None:
        """Extends these deliveries from now on."""
        handles = list(handles)
        self.end(handles)
        for handle in handles:
            if self._shares.take(client[0]):
                self._by_handle[handle] = Renewal(client, group)
                self._of_client[client][handle] = None

    def end(self, handles: Iterable[str]) -> None:
        """Stops extending these deliveries: they are settled or returned."""
        for handle in handles:
            if (one := self._by_handle.pop(handle, None)) is not None:
                self._shares.give_back(one.client[0])
                del self._of_client[one.client][handle]
                if not self._of_client[one.client]:
                    del self._of_client[one.client]

    async def give_back(self, client: Client, group: str) -> None:
        """Returns a client's unsettled deliveries of a group when the client ends.

        Raises GroupNotExist or SystemBusy.
        """
        held = self._of_client.get(client, ())
        handles = [handle for handle in held if self._by_handle[handle].group == group]
        self.end(handles)
        for start in range(0, len(handles), MAX_HANDLES):
            await returns.give_back(group, handles[start : start + MAX_HANDLES], 0)

    async def _look_forever(self) -> None:
        while True:
            # With a short invisible time, a pause of LOOK_SECONDS could be too long.
            await asyncio.sleep(min(LOOK_SECONDS, half_time() / 4))
            now = time.monotonic()
            due = self._due(now)
            self.end([handle for handle in due if self._by_handle[handle].until <= now])
            for client in {self._by_handle[handle].client for handle in due if handle in self._by_handle}:
                await _try(self._leave_unless_it_may(client), client=client[1])
            for group, handles in self._by_group(due).items():
                await _try(self._extend(group, handles), group=group)

    async def _leave_unless_it_may(self, client: Client) -> None:
        if not await streams().may_consume(client):
            self.end(list(self._of_client.get(client, ())))

    def _due(self, now: float) -> list[str]:
        """The receipt handles to extend now. Deliveries whose longest time is over, or whose client has left, are
        dropped.
        """
        return list(takewhile(lambda handle: self._by_handle[handle].due_at <= now, self._by_handle))

    def _by_group(self, due: Iterable[str]) -> dict[str, list[str]]:
        """The due handles by group, without handles that were settled or dropped meanwhile."""
        found = defaultdict[str, list[str]](list)
        for handle in due:
            if handle in self._by_handle:
                found[self._by_handle[handle].group].append(handle)
        return found

    async def _extend(self, group: str, handles: list[str]) -> None:
        for start in range(0, len(handles), MAX_HANDLES):
            part = handles[start : start + MAX_HANDLES]
            outcomes = await settling.extend(group, part, None)
            for handle, refusal in zip(part, outcomes, strict=True):
                if refusal is not None:
                    self.end([handle])
                elif handle in self._by_handle:
                    self._by_handle[handle].due_at = time.monotonic() + half_time()
                    self._by_handle.move_to_end(handle)


async def _try(work: Coroutine[Any, Any, None], **concerned: str) -> None:
    """Runs one extension or return. If it is refused, logs the refusal; the next look repeats it."""
    try:
        begin_request()
        await work
    except Exception as problem:
        refusal = refusal_of(problem)
        if refusal is None:
            logger.exception("renewals failed", **concerned)
        else:
            logger.warning("renewals have to wait", reason=refusal.detail, **concerned)


def half_time() -> float:
    """The number of seconds between two extensions."""
    return float(setting("DEFAULT_INVISIBLE_SECONDS")) / 2


def renewals() -> Renewals:
    """This process's object of the class Renewals."""
    return runtime.control(Renewals)
