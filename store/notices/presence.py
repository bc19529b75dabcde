"""Presence: which producer groups poll and which consumer groups receive, as each web process notes it.

No other code depends on it: it shows operators whether a group is connected. A process keeps the presence in memory and
writes it to the control every NOTED_SECONDS.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from django.db.models import Max, Q, Sum
from django.db.models.functions import Now

from store.db import connections
from store.db.statements import Statement
from store.errors import GroupNotExist
from store.naming.names import is_name
from store.notices.heartbeats import NOTED_SECONDS, own_name
from store.process.models import Presence

NOTE_PRESENCE = Statement(__file__, "note_presence")

# A connection without a call for this time does not count any more.
COUNTED_SECONDS = 10.0
# The most connections that one process counts. Calls over further connections are served without being counted.
MAX_CONNECTIONS = 20_000

Role = Literal["producer", "consumer"]
Connection = tuple[str, int] | None


class Asking(NamedTuple):
    """The time of a group's last call, and over how many connections it has called within COUNTED_SECONDS."""

    asked_at: datetime
    connections: int


class Present:
    """The connections over which groups call this process, with the time of the last call by time.monotonic()."""

    def __init__(self) -> None:
        self._asked: defaultdict[tuple[Role, str], dict[Connection, float]] = defaultdict(dict)
        self._waiting: defaultdict[tuple[Role, str], dict[Connection, int]] = defaultdict(dict)
        self._connections = 0
        self._noted_at = -NOTED_SECONDS

    @contextlib.contextmanager
    def asks(self, role: Role, group: str, connection: Connection) -> Iterator[None]:
        """A block that counts a call. A text that is no group name is not kept: it may be long or contain a NUL.

        The name of a group that does not exist is dropped: a key may invent a name in each call.
        """
        is_kept = (role, group) in self._asked or is_name(group)
        if self._connections >= MAX_CONNECTIONS or not is_kept:
            yield
            return
        asked, waiting = self._asked[role, group], self._waiting[role, group]
        self._connections += connection not in asked
        asked[connection] = time.monotonic()
        waiting[connection] = waiting.get(connection, 0) + 1
        try:
            yield
        except GroupNotExist:
            self._forget((role, group))
            raise
        finally:
            waiting[connection] -= 1
            if not waiting[connection]:
                del waiting[connection]
                asked[connection] = time.monotonic()

    def _forget(self, key: tuple[Role, str]) -> None:
        self._connections -= len(self._asked.pop(key, ()))
        self._waiting.pop(key, None)

    async def note(self) -> None:
        """Writes the presence of this process, at most every NOTED_SECONDS."""
        now = time.monotonic()
        if now - self._noted_at < NOTED_SECONDS or not self._asked:
            return
        self._noted_at = now
        rows = self._counted(now)
        if rows:
            await connections.read_control(
                NOTE_PRESENCE,
                {
                    "process": own_name("web"),
                    "role": [role for role, _, _, _ in rows],
                    "group_name": [group for _, group, _, _ in rows],
                    "connections": [count for _, _, count, _ in rows],
                    "seconds_ago": [ago for _, _, _, ago in rows],
                },
            )

    def _counted(self, now: float) -> list[tuple[Role, str, int, float]]:
        """Rows of role, group, number of connections, seconds since the last call. Drops quiet connections."""
        rows: list[tuple[Role, str, int, float]] = []
        for key, asked in list(self._asked.items()):
            waiting = self._waiting[key]
            asked.update(dict.fromkeys(waiting, now))
            for connection in [connection for connection, at in asked.items() if now - at > COUNTED_SECONDS]:
                del asked[connection]
                self._connections -= 1
            if asked:
                rows.append((*key, len(asked), now - max(asked.values())))
            else:
                del self._asked[key], self._waiting[key]
        return rows


def of_groups(role: Role, names: Sequence[str]) -> dict[str, Asking]:
    """The groups that called any web process within a day, by name."""
    fresh = Q(asked_at__gte=Now() - timedelta(seconds=COUNTED_SECONDS))
    rows = Presence.objects.filter(role=role, group_name__in=names).values_list("group_name")
    found = rows.annotate(latest=Max("asked_at"), fresh=Sum("connections", filter=fresh, default=0))
    return {name: Asking(*asking) for name, *asking in found}
