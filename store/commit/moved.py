"""Topics that have left a cell: its guard refuses their messages, and those of an operation are written elsewhere.

The guard is a CHECK constraint of the log, which names the topics. A process whose map of topics is old meets it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from psycopg import errors as pg

from store.commit.operation import outdated
from store.commit.pending import Pending, resolve
from store.db import connections
from store.db.connections import Connection
from store.db.outcomes import GUARD
from store.db.statements import Statement
from store.errors import TopicMoved
from store.process import runtime


class Guard(NamedTuple):
    """The expression of a cell's guard."""

    expression: str


FIND_GUARD = Statement(__file__, "find_guard", Guard)
OUTDATED = "The map from topics to cells has changed meanwhile: nothing was stored, try again in a second."
_TOPIC = re.compile(r"\d+")


class Outdated(Exception):
    """A batch has operations that an older map has led to this cell than its connection was opened under."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the map has the version {version}")
        self._version = version

    def refuse(self, pending: Sequence[Pending]) -> list[Pending]:
        """Refuses these; returns the rest, which is written again."""
        again = outdated([one.operation for one in pending], self._version)
        resolve([one for one in pending if one.operation in again], TopicMoved(OUTDATED))
        return [one for one in pending if one.operation not in again]


class Departed(Exception):
    """A batch has messages of topics that have left this cell: it was rolled back."""

    def __init__(self, topic_ids: frozenset[int], cell: str) -> None:
        super().__init__(f"topics {sorted(topic_ids)} have left the cell {cell}")
        self._topic_ids = topic_ids
        self._cell = cell

    def refuse(self, pending: Sequence[Pending]) -> list[Pending]:
        """Refuses what writes to these topics, all of it at once; returns the rest, which is written again.

        An operation by itself, whose topics are not known before it is written, is refused, too.
        """
        left = []
        for one in pending:
            names = [name for id_, name in one.operation.written_topics().items() if id_ in self._topic_ids]
            if names or len(pending) == 1:
                one.resolve(self._refusal(names))
            else:
                left.append(one)
        return left

    def _refusal(self, names: Sequence[str]) -> TopicMoved:
        moved = f"The topic {names[0]} has" if names else "A topic of this request has"
        return TopicMoved(f"{moved} left the cell {self._cell}: nothing was stored there, try again in a second.")


def open_to(pending: Sequence[Pending], connection: Connection) -> Connection:
    """The connection, which no operation has an older map than. Raises Outdated."""
    version = connection.map_version
    if version and outdated([one.operation for one in pending], version):
        raise Outdated(version)
    return connection


async def problem_of(violation: pg.CheckViolation, connection: Connection | None) -> Exception:
    """Departed where a batch was rolled back because it met the guard, or else what it met."""
    if violation.diag.constraint_name != GUARD or connection is None:
        return violation
    found = await connections.execute(connection, FIND_GUARD)
    topic_ids = frozenset(int(id_) for guard in found for id_ in _TOPIC.findall(guard.expression))
    return Departed(topic_ids, runtime.here().name)
