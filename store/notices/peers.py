"""The other web processes that listen for notices, known by the notices that they send."""

import math
import secrets

from store.db.statements import Statement

NOTIFY = Statement(__file__, "notify")

# A process that listens sends a notice this often. A process that has sent none for ALONE_SECONDS counts as gone.
PRESENCE_SECONDS = 2.0
ALONE_SECONDS = 7.0
# A process that has not heard its own notices for this time hears nothing. This time is one interval of notices shorter
# than ALONE_SECONDS, so that a deaf process knows this before it counts other processes as gone.
DEAF_SECONDS = ALONE_SECONDS - PRESENCE_SECONDS
# More than any installation has. A limit, because any role that may connect to the database may announce invented
# processes; further ones are ignored.
MAX_PEERS = 200
# A process that does not listen sends notices under this name, so that no process waits for its confirmation.
NOT_LISTENING = ""


class Peers:
    """The other processes that listen. If there are none, no notice of entries is sent, because a notice costs as much
    as a small batch.

    A process that listens, or tries to listen again, announces itself by a notice without topics. A process that does
    not listen assumes that others listen, but knows none of them. If an announcement comes late, the requests of its
    process get messages some seconds later, when they read again by themselves.
    """

    def __init__(self) -> None:
        # The name in this process's own notices. PostgreSQL also sends them to this process, which ignores them.
        self.name = secrets.token_hex(8)
        self._is_listener = False
        self._alone_from = math.inf
        self._all_known_from = math.inf
        self._heard_itself_at = -math.inf
        # The time of the last notice of each other process.
        self._heard: dict[str, float] = {}

    @property
    def sender(self) -> str:
        """The name under which this process sends its notices of entries."""
        return self.name if self._is_listener else NOT_LISTENING

    def begin(self) -> None:
        """Notes that this process is a listener: from now on it listens, or tries to."""
        self._is_listener = True

    def listen(self, now: float) -> None:
        """Notes that this process listens from now on."""
        self._alone_from = self._all_known_from = now + ALONE_SECONDS
        self._heard_itself_at = now

    def hear_itself(self, now: float) -> None:
        """Notes that one of this process's own notices has arrived, and so all earlier notices."""
        if self._is_deaf(now):
            self._all_known_from = now + ALONE_SECONDS
        self._heard_itself_at = now

    def hear(self, name: str, now: float) -> bool:
        """Notes a notice of another process; True if the other process is new, and may not know this one."""
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
        """Notes that this process does not listen any more."""
        self._alone_from = self._all_known_from = math.inf
        self._heard = {}

    def may_listen(self, now: float) -> bool:
        """Whether another process may be listening."""
        return now < self._alone_from

    def others(self, now: float) -> set[str]:
        """The other processes that listen, as far as this process knows; empty if this process does not listen."""
        return {name for name, at in self._heard.items() if now < at + ALONE_SECONDS}

    def may_be_unknown(self, now: float) -> bool:
        """Whether a process that is unknown here may listen, or try to. True unless this process has listened for
        ALONE_SECONDS without a break. False for a process that never listens, such as a worker, which waits for no
        other process.
        """
        return self._is_listener and not self.hears_all(now)

    def hears_all(self, now: float) -> bool:
        """Whether this process has listened for ALONE_SECONDS without a break, so that all others notify it."""
        return self._is_listener and now >= self._all_known_from and not self._is_deaf(now)

    def _is_deaf(self, now: float) -> bool:
        """Whether notices do not arrive: the server or this process was frozen, or the connection broke silently."""
        return now > self._heard_itself_at + DEAF_SECONDS
