"""The caches of all web processes: dropped by each of them before a change of the configuration is answered.

Each process caches topics, groups and API keys for seconds. One that has changed some of them notifies the others; each
drops what it has cached and confirms that, and the change is answered when all have. One that cannot know which others
there are waits until no cache holds anything of the time before the change.
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
from store.errors import Refusal
from store.notices.peers import NOT_LISTENING, NOTIFY, Peers
from store.process import runtime

CHANNEL = "mqbroker_changed"
PAYLOAD = re.compile(
    r"(?P<word>changed|dropped):(?P<process>[0-9a-f]{1,32}):(?P<number>[0-9]{1,18})(:(?P<by>[0-9a-f]{1,32}))?"
)
# Confirmations of one process under way.
MAX_CONFIRMING = 100
# No process caches configuration for longer: a process that does not confirm has dropped it by itself after this.
LONGEST_CACHED_SECONDS = 3.0


class Unconfirmed:
    """The processes that have not yet dropped what they had cached before one change."""

    def __init__(self, processes: set[str]) -> None:
        self._processes = processes
        self._none_left = threading.Event()

    def confirmed(self, process: str) -> None:
        """A process has dropped what it had cached."""
        self._processes.discard(process)
        if not self._processes:
            self._none_left.set()

    def wait(self, seconds: float) -> None:
        """Returns when each process has confirmed, after so many seconds at the latest."""
        if self._processes and seconds > 0:
            self._none_left.wait(seconds)


class Changes:
    """The changes that this process has made and others have not confirmed, and its confirmations of theirs."""

    def __init__(self) -> None:
        self._numbers = count()
        self._unconfirmed: dict[str, Unconfirmed] = {}
        self._confirming: set[asyncio.Task[None] | None] = set()

    def announce(self) -> None:
        """Drops what this process has cached, and waits until the others have; see `drop_everywhere`."""
        changed_at = time.monotonic()
        runtime.current().forget()
        peers = runtime.control(Peers)
        processes = peers.others(changed_at)
        if peers.may_be_unknown(changed_at):
            # It confirms nothing.
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
        """A notice of CHANNEL has come: `changed`, the process and its number, or `dropped`, these and who did."""
        found = PAYLOAD.fullmatch(payload)
        if found is None:
            return  # Any role may notify the channel.
        word, process, number, by = found["word"], found["process"], found["number"], found["by"]
        peers = runtime.control(Peers)
        if word == "dropped" and process == peers.name and number in self._unconfirmed:
            self._unconfirmed[number].confirmed(by or "")
        elif word == "changed" and process != peers.name:
            runtime.current().forget()
            if len(self._confirming) >= MAX_CONFIRMING:
                return  # What is not confirmed is waited for until no cache holds it.
            confirming = self._confirm(f"dropped:{process}:{number}:{peers.name}")
            self._confirming.add(asyncio.create_task(confirming, name="confirm"))

    async def _confirm(self, payload: str) -> None:
        with contextlib.suppress(Refusal):
            # The change may be a cell, which it serves from its answer on.
            await cells.learn()
            await connections.read_control(NOTIFY, {"channel": CHANNEL, "payload": payload})
        self._confirming.discard(asyncio.current_task())


def drop_everywhere() -> None:
    """Once the transaction is committed: has every process drop what it has cached of the configuration.

    For synchronous code, on Django's connection. The commit returns when the processes that listen have dropped it, or
    after LONGEST_CACHED_SECONDS: where one of them does not confirm, or this process has lost its connection for
    notices or has just begun to listen. In a process that never listens, such as a worker, it returns at once.
    """
    transaction.on_commit(runtime.control(Changes).announce)
