"""The caches of all web processes: each process drops its caches before a change of the configuration is answered.

Each process caches topics, groups and API keys for seconds. A process that changes one of these notifies the other
processes. Each of them drops its caches and confirms this, and the change is answered when all have confirmed. A
process that cannot know all others waits until every cached value is newer than the change.
"""

import asyncio
import contextlib
import re
import threading
import time
from itertools import count

from django.db import DatabaseError, transaction

from store.cells import cells
from store.db import connections, patience, sync
from store.db.statements import Statement
from store.errors import Refusal
from store.notices.peers import NOT_LISTENING, NOTIFY, Peers
from store.process import runtime

CONFIRM_CHANGES = Statement(__file__, "confirm_changes")

CHANNEL = "mqbroker_changed"
PAYLOAD = re.compile(
    r"(?P<word>changed|dropped):(?P<process>[0-9a-f]{1,32}):(?P<number>[0-9]{1,18})(:(?P<by>[0-9a-f]{1,32}))?"
)
# Any role that may connect to the database may announce changes, as often as it likes, and with empty caches each
# request has several look-ups. So a process drops its caches only once in this time, for all changes that others have
# announced.
ROUND_SECONDS = 0.05
# The most changes that one round confirms; further changes are not confirmed, and wait the longest time.
MAX_CONFIRMED = 100
# No process uses cached configuration for longer than this. After this time, the caches of a process that has not
# confirmed are out of date and no longer used.
LONGEST_CACHED_SECONDS = 3.0


class Unconfirmed:
    """The processes that have not yet confirmed one change."""

    def __init__(self, processes: set[str]) -> None:
        self._processes = processes
        self._none_left = threading.Event()

    def confirmed(self, process: str) -> None:
        """Notes that a process has dropped its caches."""
        self._processes.discard(process)
        if not self._processes:
            self._none_left.set()

    def wait(self, seconds: float) -> None:
        """Waits until each process has confirmed, `seconds` at most."""
        if self._processes and seconds > 0:
            self._none_left.wait(seconds)


class Changes:
    """Changes of this process that others have not confirmed, and changes of others that it has to confirm."""

    def __init__(self) -> None:
        self._numbers = count()
        self._unconfirmed: dict[str, Unconfirmed] = {}
        self._unsent: list[str] = []
        self._rounds: asyncio.Task[None] | None = None

    def announce(self) -> None:
        """Drops the caches of this process, and waits until the others have dropped theirs; see `drop_everywhere`."""
        changed_at = time.monotonic()
        runtime.current().forget()
        peers = runtime.control(Peers)
        processes = peers.others(changed_at)
        if peers.may_be_unknown(changed_at):
            # This name stands for a process that never confirms, so that the change waits the longest time.
            processes.add(NOT_LISTENING)
        number = str(next(self._numbers))
        unconfirmed = self._unconfirmed[number] = Unconfirmed(processes)
        try:
            with contextlib.suppress(DatabaseError), patience.of(LONGEST_CACHED_SECONDS):
                sync.read(NOTIFY, {"channel": CHANNEL, "payload": f"changed:{peers.name}:{number}"})
            unconfirmed.wait(changed_at + LONGEST_CACHED_SECONDS - time.monotonic())
        finally:
            del self._unconfirmed[number]

    def heard(self, payload: str) -> None:
        """Handles a notice of CHANNEL: `changed:process:number`, or `dropped:process:number:by`."""
        found = PAYLOAD.fullmatch(payload)
        if found is None:
            return  # The notice is invalid: any role may notify the channel.
        word, process, number, by = found["word"], found["process"], found["number"], found["by"]
        peers = runtime.control(Peers)
        if word == "dropped" and process == peers.name and number in self._unconfirmed:
            self._unconfirmed[number].confirmed(by or "")
        elif word == "changed" and process != peers.name:
            if len(self._unsent) < MAX_CONFIRMED:
                self._unsent.append(f"dropped:{process}:{number}:{peers.name}")
            if self._rounds is None or self._rounds.done():
                self._rounds = asyncio.create_task(self._drop_in_rounds(), name="confirm")

    async def _drop_in_rounds(self) -> None:
        """Drops the caches and confirms the changes, in rounds, as long as other processes announce changes."""
        while self._unsent:
            payloads, self._unsent = self._unsent, []
            runtime.current().forget()
            with contextlib.suppress(Refusal):
                # The change may be a new cell, which every process must serve before the change is answered.
                await cells.learn()
                await connections.read_control(CONFIRM_CHANGES, {"channel": CHANNEL, "payloads": payloads})
            await asyncio.sleep(ROUND_SECONDS)


def drop_everywhere() -> None:
    """After the commit of the transaction, makes every process drop its cached configuration.

    For synchronous code, on Django's connection. The commit returns when all processes that listen have confirmed. It
    returns after LONGEST_CACHED_SECONDS if a process does not confirm, or if this process has lost its connection for
    notices or has just begun to listen. In a process that never listens, such as a worker, it returns at once.
    """
    transaction.on_commit(runtime.control(Changes).announce)
