"""An outbox that two processes drain while producers insert, and while its partitions change places."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from tests.outboxes.conftest import table
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import StageConnection, of_stage
from tests.simulated.planting import of_page
from transactions.outboxes.source import CLEAR_SLOT, HOLD_STATE, MEASURE_ROWS, TAKE_ROWS, TURN_SLOT, Source

SCHEMA = "shop"
MOST_ROWS, MOST_BYTES = 100, 1_000_000
MOST = {"max_rows": MOST_ROWS, "closed": []}
LARGEST = {"max_row_bytes": MOST_BYTES}
INSERT = b"INSERT INTO shop.mqbroker_outbox (topic, body, sharding_key) VALUES ('orders', '%b', 'one key')"


def made(statements: str) -> str:
    """The statements that make an outbox in a schema of its own."""
    return f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; SET search_path TO {SCHEMA}; {statements}"


def _source(connection: StageConnection) -> Source:
    # As `sessions.connect` has it.
    connection.prepare_threshold = None
    return Source(connection, SCHEMA)


class Draining(Scenario):
    """Some of: `drain`, `other` (a second process), `small` and `second` (processes that take rows in one statement),
    `insert` and `later` (producers), `slots` (a partition is emptied).

    What a drain stores is noted before the commit of its transaction, as the broker stores messages before that.
    """

    # A producer's commit ends its transaction; the settings and the savepoint of a turn change nothing that others see.
    leading = ("mqbroker_outbox AS o WHERE o.topic",)

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str]) -> None:
        self._watch, self._names = watch, names
        self._statements = made(of_page(table()))
        self._stored: list[str] = []
        self._committed: list[str] = []
        self._is_made = False

    async def begin(self) -> Mapping[str, Work]:
        if not self._is_made:
            self._watch.execute(self._statements.encode())
            self._watch.execute("RESET search_path")
            self._is_made = True
        self._watch.execute("DELETE FROM shop.mqbroker_outbox")
        self._watch.execute("UPDATE shop.mqbroker_outbox_state SET slot = 0, asleep = false")
        self._watch.execute("SELECT setval('shop.mqbroker_outbox_seq', 1), setval('shop.mqbroker_outbox_awake', 2)")
        self._stored, self._committed = [], ["first"]
        self._watch.execute(INSERT % b"first")
        works = {"drain": self._drain, "other": self._drain, "slots": self._slots}
        works |= {"small": self._small, "second": self._small}
        return {name: of_stage(works.get(name) or self._inserts(name)) for name in self._names}

    def _inserts(self, body: str) -> Any:
        async def work(connection: StageConnection) -> None:
            await connection.execute(b"BEGIN; " + INSERT % body.encode(), prepare=False)
            await connection.commit()
            self._committed.append(body)

        return work

    async def _drain(self, connection: StageConnection) -> object:
        source = _source(connection)
        async with source.turn() as turn:
            if not turn.is_mine:
                return "not its turn"
            measured = await source.read(MEASURE_ROWS, MOST)
            if not measured:
                return "nothing"
            places = {"slots": [row.slot for row in measured], "seqs": [row.seq for row in measured]}
            rows = await source.read(TAKE_ROWS, {**places, **LARGEST})
            if len(rows) != len(measured):
                return "rows that were measured are not there to be taken"
            self._stored += [str(row.body) for row in sorted(rows, key=lambda row: row.seq)]
        return len(rows)

    async def _small(self, connection: StageConnection) -> object:
        source = _source(connection)
        async with source.small_turn(MOST_ROWS, MOST_BYTES) as found:
            if not found[0].is_mine:
                return "not its turn"
            rows = [row.row for row in found if row.seq is not None]
            self._stored += [str(row.body) for row in sorted(rows, key=lambda row: row.seq)]
        return len(rows)

    async def _slots(self, connection: StageConnection) -> object:
        source = _source(connection)
        async with source.transaction():
            if not await source.read(HOLD_STATE):
                return "not its turn"
            [turned] = await source.read(TURN_SLOT)
        async with source.transaction():
            if not await source.read(HOLD_STATE):
                return "turned"
            await source.read(CLEAR_SLOT, {"slot": turned})
        return "turned"

    async def outcome(self, answers: Mapping[str, object]) -> object:
        """What was stored, and behind it what still waits, beside what was committed."""
        rows = self._watch.execute("SELECT body FROM shop.mqbroker_outbox ORDER BY seq").fetchall()
        found = [*self._stored, *(row[0] for row in rows)]
        is_kept = found == self._committed and not any(str(answer).startswith("rows") for answer in answers.values())
        return "all, in the order of the commits" if is_kept else (dict(answers), found, self._committed)

    def serial(self, order: Sequence[str]) -> object:
        return "all, in the order of the commits"
