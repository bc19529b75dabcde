"""The guard of the tests over cells: what a session does for a topic of another cell fails, and so does its test."""

from collections.abc import Sequence

import psycopg
import pytest

from tests.broker.cells import REFUSED_BY_GUARD, Cells

ROWS = (
    "INSERT INTO queue_floor (topic_id) VALUES (%s)",
    "INSERT INTO timer (topic_id) VALUES (%s)",
    "INSERT INTO half_message (topic_id) VALUES (%s)",
    "INSERT INTO operation (segment_id, topic_ids) SELECT id, ARRAY[%s] FROM segment WHERE state = 'open'",
)
LOCKS = (
    "SELECT pg_advisory_xact_lock(%s, 0)",
    "SELECT pg_try_advisory_xact_lock(%s, 0)",
    "SELECT pg_advisory_xact_lock(7::bigint << 42 | %s::bigint << 18)",
    "SELECT pg_try_advisory_xact_lock(7::bigint << 42 | %s::bigint << 18 | 3)",
)


@pytest.mark.parametrize("statement", [*ROWS, *LOCKS])
def test_a_session_of_a_cell_neither_writes_nor_locks_for_a_topic_of_another(
    cells: Cells, spread: Sequence[str], statement: str
) -> None:
    [[foreign]] = cells.sql(0, "SELECT id FROM topic WHERE name = %s", spread[2])

    with pytest.raises(psycopg.errors.RaiseException, match=REFUSED_BY_GUARD):
        cells.sql(1, statement, foreign)


@pytest.mark.parametrize("statement", LOCKS)
def test_a_session_locks_for_the_topics_of_its_own_cell(cells: Cells, spread: Sequence[str], statement: str) -> None:
    [[own]] = cells.sql(0, "SELECT id FROM topic WHERE name = %s", spread[1])

    assert len(cells.sql(1, statement, own)) == 1
