"""The other web processes that listen for notices, known by the notices that they send."""

import math
import secrets

from store.db.statements import Statement
from store.rows import Notified

NOTIFY = Statement(__file__, "notify", Notified)

# A process that listens sends a notice this often. One that has sent none for ALONE_SECONDS counts as gone.
PRESENCE_SECONDS = 2.0
ALONE_SECONDS = 7.0


class Peers:
    """Which other processes listen. Where none does, no notice is sent: it costs as much as a small batch.

    A process that listens announces itself by a notice that names no topic. One that does not listen itself assumes
    that others do. An announcement that comes late costs the requests of its process some seconds: they read again by
    themselves.
    """

    def __init__(self) -> None:
        # PostgreSQL sends a process its own notices too; its waiters have been woken long before.
        self.name = secrets.token_hex(8)
        self._alone_from = math.inf
        # When each other process was heard of last.
        self._heard: dict[str, float] = {}

    def listen(self, now: float) -> None:
        """From now on this process hears of others."""
        self._alone_from = now + ALONE_SECONDS

    def hear(self, name: str, now: float) -> bool:
        """A notice of another process has come. Returns whether the process is new: then it does not know this one."""
        is_new = name not in self.others(now)
        self._alone_from = now + ALONE_SECONDS
        self._heard = {other: at for other, at in self._heard.items() if now < at + ALONE_SECONDS}
        self._heard[name] = now
        return is_new

    def end(self) -> None:
        """This process does not listen any more."""
        self._alone_from = math.inf
        self._heard = {}

    def may_listen(self, now: float) -> bool:
        """Whether there may be another process that listens."""
        return now < self._alone_from

    def others(self, now: float) -> set[str]:
        """The processes that listen, as far as this one has heard of them; none for one that does not listen itself."""
        return {name for name, at in self._heard.items() if now < at + ALONE_SECONDS}
