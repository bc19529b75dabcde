"""The other web processes that listen for notices, known by the notices that they send."""

import math
import secrets
from typing import NamedTuple

from store.db.statements import Statement


class Notified(NamedTuple):
    """A notice that was sent."""

    pg_notify: None


NOTIFY = Statement(__file__, "notify", Notified)

# A process that listens sends a notice this often. One that has sent none for ALONE_SECONDS counts as gone.
PRESENCE_SECONDS = 2.0
ALONE_SECONDS = 7.0
# A process that has not heard its own notices for so long hears nothing: less than ALONE_SECONDS by a notice of another
# process, so that it is known before one that is there counts as gone.
DEAF_SECONDS = ALONE_SECONDS - PRESENCE_SECONDS
# More than an installation has: anybody who may connect to the database may announce processes that there are not.
MAX_PEERS = 200
# The sender of a notice that says nothing about its process: none waits for a process which does not listen.
NOT_LISTENING = ""


class Peers:
    """Which other processes listen. Where none does, no notice of entries is sent: it costs as much as a small batch.

    A process that listens, or tries to listen again, announces itself by a notice that names no topic. One that does
    not listen itself assumes that others do, and knows none of them. An announcement that comes late costs the requests
    of its process some seconds: they read again by themselves.
    """

    def __init__(self) -> None:
        # PostgreSQL sends a process its own notices too; its waiters have been woken long before.
        self.name = secrets.token_hex(8)
        self._is_listener = False
        self._alone_from = math.inf
        self._all_known_from = math.inf
        self._heard_itself_at = -math.inf
        # When each other process was heard of last.
        self._heard: dict[str, float] = {}

    @property
    def sender(self) -> str:
        """By which name this process sends its notices of entries."""
        return self.name if self._is_listener else NOT_LISTENING

    def begin(self) -> None:
        """From now on this process tries to listen, each time that it does not."""
        self._is_listener = True

    def listen(self, now: float) -> None:
        """From now on this process hears of others."""
        self._alone_from = self._all_known_from = now + ALONE_SECONDS
        self._heard_itself_at = now

    def hear_itself(self, now: float) -> None:
        """A notice of this process itself has come, and so has what others sent before."""
        if self._is_deaf(now):
            self._all_known_from = now + ALONE_SECONDS
        self._heard_itself_at = now

    def hear(self, name: str, now: float) -> bool:
        """A notice of another process has come. Returns whether the process is new: then it does not know this one."""
        if name == NOT_LISTENING:
            return False
        is_new = name not in self.others(now)
        self._alone_from = now + ALONE_SECONDS
        self._heard = {other: at for other, at in self._heard.items() if now < at + ALONE_SECONDS}
        if is_new and len(self._heard) >= MAX_PEERS:
            return False
        self._heard[name] = now
        return is_new

    def end(self) -> None:
        """This process does not listen any more."""
        self._alone_from = self._all_known_from = math.inf
        self._heard = {}

    def may_listen(self, now: float) -> bool:
        """Whether there may be another process that listens."""
        return now < self._alone_from

    def others(self, now: float) -> set[str]:
        """The processes that listen, as far as this one has heard of them; none for one that does not listen itself."""
        return {name for name, at in self._heard.items() if now < at + ALONE_SECONDS}

    def may_be_unknown(self, now: float) -> bool:
        """Whether another process may listen, or try to, that this one has not heard of.

        It does not listen, or has not for ALONE_SECONDS without a break. A process that never listens, as a worker,
        knows none and waits for none.
        """
        return self._is_listener and not self.hears_all(now)

    def hears_all(self, now: float) -> bool:
        """Whether it has listened for ALONE_SECONDS without a break: each process that publishes notifies it."""
        return self._is_listener and now >= self._all_known_from and not self._is_deaf(now)

    def _is_deaf(self, now: float) -> bool:
        """Whether notices fail to come: the server or this process was frozen, or its connection broke silently."""
        return now > self._heard_itself_at + DEAF_SECONDS
