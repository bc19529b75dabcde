"""Who is connected: the producers that poll for checks and the consumers that receive, noted by each web process.

Nothing depends on it: it tells an operator whether anybody asks. A process keeps it in memory and writes it every
NOTED_SECONDS, to the control.
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
from store.naming.names import is_name
from store.notices.heartbeats import NOTED_SECONDS, own_name
from store.process.models import Presence

NOTE_PRESENCE = Statement(__file__, "note_presence")

# A connection that has not asked for so long is not counted any more.
COUNTED_SECONDS = 10.0
# Of one process: beyond them the calls are served, and not counted.
MAX_CONNECTIONS = 20_000

Role = Literal["producer", "consumer"]
Connection = tuple[str, int] | None


class Asking(NamedTuple):
    """When a group last asked, and over how many connections it asked within COUNTED_SECONDS before that."""

    asked_at: datetime
    connections: int


class Present:
    """The connections that ask for a group in this process: when each last did, by time.monotonic()."""

    def __init__(self) -> None:
        self._asked: defaultdict[tuple[Role, str], dict[Connection, float]] = defaultdict(dict)
        self._waiting: defaultdict[tuple[Role, str], dict[Connection, int]] = defaultdict(dict)
        self._connections = 0
        self._noted_at = -NOTED_SECONDS

    @contextlib.contextmanager
    def asks(self, role: Role, group: str, connection: Connection) -> Iterator[None]:
        """Counts a call from its begin to its end. What is no name is not kept: it may be long, or have a NUL in it."""
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
        finally:
            waiting[connection] -= 1
            if not waiting[connection]:
                del waiting[connection]
                asked[connection] = time.monotonic()

    async def note(self) -> None:
        """Writes what changed since the last time, every NOTED_SECONDS at most."""
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
        """By role and group: how many connections, the seconds since the last call. Forgets quiet connections."""
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
    """By name: the groups that asked within a day, over all web processes."""
    fresh = Q(asked_at__gte=Now() - timedelta(seconds=COUNTED_SECONDS))
    rows = Presence.objects.filter(role=role, group_name__in=names).values_list("group_name")
    found = rows.annotate(latest=Max("asked_at"), fresh=Sum("connections", filter=fresh, default=0))
    return {name: Asking(*asking) for name, *asking in found}
