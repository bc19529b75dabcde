"""Renewals: the deliveries of a push consumer stay hidden while its stream is open, until it settles them.

A push consumer names no invisible time: it asks the broker to extend what it has. Extended is at half of the default
time, for LONGEST_SECONDS at most, and while its key may consume. What another process has settled is not found, and
dropped.
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
# Of one process, one key five eighths, some 500 bytes each. Beyond them a delivery is hidden for the default time, and
# comes again.
MAX_RENEWED = 100_000
MAX_HANDLES = 500


class Renewal:
    """A delivery that is renewed: its client, its group, the next renewal and the last one, by time.monotonic()."""

    __slots__ = ("client", "due_at", "group", "until")

    def __init__(self, client: Client, group: str) -> None:
        now = time.monotonic()
        self.client = client
        self.group = group
        self.due_at = now + half_time()
        self.until = now + LONGEST_SECONDS


class Renewals:
    """The deliveries that this process renews, by their receipt handles."""

    def __init__(self) -> None:
        # In the order in which they are due: all are so after the same time.
        self._by_handle: OrderedDict[str, Renewal] = OrderedDict()
        self._of_client: defaultdict[Client, dict[str, None]] = defaultdict(dict)
        self._shares = Shares(MAX_RENEWED)
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to renew, in the running event loop."""
        self._looking = asyncio.create_task(self._look_forever(), name="renewals")

    async def close(self) -> None:
        """Stops renewing: what is not settled comes again when its time is over."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def begin(self, client: Client, group: str, handles: Iterable[str]) -> None:
        """Renews deliveries from now on."""
        handles = list(handles)
        self.end(handles)
        for handle in handles:
            if self._shares.take(client[0]):
                self._by_handle[handle] = Renewal(client, group)
                self._of_client[client][handle] = None

    def end(self, handles: Iterable[str]) -> None:
        """Renews deliveries no more: they are settled, or given back."""
        for handle in handles:
            if (one := self._by_handle.pop(handle, None)) is not None:
                self._shares.give_back(one.client[0])
                del self._of_client[one.client][handle]
                if not self._of_client[one.client]:
                    del self._of_client[one.client]

    async def give_back(self, client: Client, group: str) -> None:
        """Returns what a client has of a group and did not settle: it ends. Raises GroupNotExist or SystemBusy."""
        held = self._of_client.get(client, ())
        handles = [handle for handle in held if self._by_handle[handle].group == group]
        self.end(handles)
        for start in range(0, len(handles), MAX_HANDLES):
            await returns.give_back(group, handles[start : start + MAX_HANDLES], 0)

    async def _look_forever(self) -> None:
        while True:
            # Of a short invisible time a second would be the half.
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
        """What is to be extended at this time, or renewed no more."""
        return list(takewhile(lambda handle: self._by_handle[handle].due_at <= now, self._by_handle))

    def _by_group(self, due: Iterable[str]) -> dict[str, list[str]]:
        """What is extended now, by group: what is not settled, nor dropped."""
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
    """Does one work, or logs why it has to wait: it is done again with the next look."""
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
    """Seconds between two extensions."""
    return float(setting("DEFAULT_INVISIBLE_SECONDS")) / 2


def renewals() -> Renewals:
    """The renewals of this process."""
    return runtime.control(Renewals)
