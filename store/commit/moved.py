"""Topics that have left a cell: the cell's guard refuses their messages, and the operation is written in another cell.

The guard is a CHECK constraint of the log that names the topics. A process with an old map of topics violates it.
"""

import re
from collections.abc import Sequence

import psycopg
from psycopg import errors as pg

from store.commit.operation import outdated
from store.commit.pending import Pending, resolve
from store.db import connections
from store.db.connections import Connection
from store.db.outcomes import GUARD
from store.db.statements import Statement
from store.errors import TopicMoved
from store.process import runtime

FIND_GUARD = Statement(__file__, "find_guard", one=str)
OUTDATED = (
    "The broker's map from topics to cells changed during this request: nothing was stored, try again in a second."
)
_TOPIC = re.compile(r"\d+")


class Outdated(Exception):
    """The cell of some operations in a batch was found with an older map of topics than the map of the connection."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the map has the version {version}")
        self._version = version

    def refuse(self, pending: Sequence[Pending]) -> list[Pending]:
        """Refuses the outdated operations. Returns the others, which are written again."""
        again = outdated([one.operation for one in pending], self._version)
        resolve([one for one in pending if one.operation in again], TopicMoved(OUTDATED))
        return [one for one in pending if one.operation not in again]


class Departed(Exception):
    """A batch was rolled back because it had messages of topics that have left this cell."""

    def __init__(self, topic_ids: frozenset[int], cell: str) -> None:
        super().__init__(f"topics {sorted(topic_ids)} have left the cell {cell}")
        self._topic_ids = topic_ids
        self._cell = cell

    def refuse(self, pending: Sequence[Pending]) -> list[Pending]:
        """Refuses all operations that write to these topics. Returns the others, which are written again.

        An operation that is alone in its batch is refused too, if its topics are not known before it is written.
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
    """Returns the connection, unless an operation's cell was found with an older map. Raises Outdated."""
    version = connection.map_version
    if version and outdated([one.operation for one in pending], version):
        raise Outdated(version)
    return connection


async def problem_of(violation: pg.CheckViolation, connection: Connection | None) -> Exception:
    """The error to raise: Departed if the guard refused the batch, SystemBusy if the guard could not be read.

    In all other cases `violation`.
    """
    if violation.diag.constraint_name != GUARD:
        return violation
    if connection is None:
        return connections.away(violation)
    try:
        guards = await connections.execute(connection, FIND_GUARD)
    except psycopg.OperationalError as problem:
        return connections.away(problem)
    topic_ids = frozenset(int(id_) for guard in guards for id_ in _TOPIC.findall(guard))
    return Departed(topic_ids, runtime.here().name)
