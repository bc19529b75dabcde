"""Promises of the page of the cells: where topics lie, and which database is away."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.broker.polling import eventually
from tests.console.operators import Operator
from tests.console.test_console_agreement import document

NOWHERE = "postgresql://127.0.0.1:1/nowhere"


@pytest.fixture
def missing_cell(session: psycopg.Connection[Any], ada: Operator) -> Iterator[str]:
    """A cell whose server is gone; the web process has left it behind the test."""
    session.execute("INSERT INTO cell (name, url, takes_topics) VALUES ('c9', %s, false)", [NOWHERE])
    yield "c9"
    session.execute("DELETE FROM cell WHERE name = 'c9'")
    eventually(lambda: "mqbroker_cell_up{" not in document(ada, "/metrics"))


def test_an_installation_of_one_database_is_one_cell(ada: Operator) -> None:
    assert [[row[0], *row[2:]] for row in ada.sees("cells/").table("cells")] == [["c0", "0", "–", "takes new topics"]]


def test_a_cell_that_is_away_is_named(ada: Operator, missing_cell: str) -> None:
    page = ada.sees("cells/")

    [_, [name, topics, epoch, standby, state]] = page.table("cells")
    assert [name, topics, epoch, standby] == [missing_cell, "0", "–", "–"]
    assert state.startswith("The cell c9 is away (")
    assert state.endswith("): the configuration cannot change until it is back.")


def test_readiness_the_overview_and_the_system_page_name_a_cell_that_is_away(ada: Operator, missing_cell: str) -> None:
    # A process learns of a cell within seconds.
    warned = eventually(lambda: [text for text in document(ada, "/readyz")["warnings"] if missing_cell in text])
    overview, system = ada.sees(""), ada.sees("system/")

    assert f"the cell {missing_cell} does not answer: its topics are answered by 503 cell_away" in warned
    assert (
        f"The cell {missing_cell} does not answer its topics are answered by 503 cell_away: start its" in overview.text
    )
    assert f"The cell {missing_cell} does not answer: its topics are answered by 503 cell_away." in system.text
    assert "It is not the broker" not in system.text


def test_a_move_is_shown_with_its_step(ada: Operator, session: psycopg.Connection[Any]) -> None:
    session.execute(
        "INSERT INTO move (running, source_id, source_name, target_id, target_name, target_url, homes, topic_ids, "
        "by_hand, step, holder, position, error) VALUES (true, 0, 'c0', 7, 'c7', '', ARRAY['shop'], ARRAY[1], false, "
        "'promoting', gen_random_uuid(), '', 'The standby is away.')"
    )
    try:
        page = ada.sees("cells/")
        assert page.table("moves") == [["c0 into c7", "shop", "promoting", "–", "The standby is away."]]
        assert "The move c0 into c7 is at the step promoting, because The standby is away; " in page.text
    finally:
        session.execute("DELETE FROM move")
