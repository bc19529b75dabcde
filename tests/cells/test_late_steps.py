"""A run that takes a move over while the run before it notes a further step."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from access.audit import Signature
from console.cells import moves, moving, steps
from console.cells.errors import CellIllegal
from console.cells.models import Move
from store.cells.sides import Side
from store.db.server_url import database
from store.process.runtime import CONTROL
from tests.broker import databases
from tests.broker.polling import eventually

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def control(prepared: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The URL of a control of the test's own, on which Django's connections of this process work."""
    with databases.copied(prepared) as url, django_db_blocker.unblock():
        before = dict(connection.settings_dict)
        connect_to(database(url))
        yield url
        connect_to(before)


def connect_to(settings: dict[str, object]) -> None:
    """Has Django's connections of this process lead to another database."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # the stubs know no pool
    connection.settings_dict.update(settings)


def test_a_run_that_takes_a_move_over_knows_the_last_step_of_the_run_before_it(control: str) -> None:
    Move.objects.create(source_id=1, source_name="c1", target_id=2, target_name="c2", step=steps.PROMOTED)
    found: list[Move] = []

    def take_over() -> None:
        found.append(moves.taken_over())
        connection.close()

    with psycopg.connect(control, autocommit=True) as watching, psycopg.connect(control) as run_before:
        run_before.execute("UPDATE move SET step = 'divided'")
        taking_over = threading.Thread(target=take_over)
        taking_over.start()
        eventually(lambda: watching.execute(WAITING).fetchone() == (1,))
    taking_over.join()

    assert [move.step for move in found] == [steps.DIVIDED]


def test_a_run_that_was_taken_over_before_it_reached_the_source_ends_no_session_there(control: str) -> None:
    move = Move.objects.create(source_id=CONTROL, source_name="c0", target_id=2, target_name="c2")
    run_before = moving.Run(move, Signature("command", "manage.py cells"), print)
    moves.taken_over()

    with Side("c0", "") as source_of_the_second_run:
        with pytest.raises(CellIllegal, match="Another run of the command has taken over the move"):
            run_before.take_back()

        assert not source_of_the_second_run.look().is_fenced
