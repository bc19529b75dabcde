"""The engine plays each interleaving once, sees who waits for whom, and finds what an order of steps does wrong."""

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import psycopg
import pytest

from tests.simulated.permutations.conftest import Play
from tests.simulated.permutations.exploring import Scenario, Wrong
from tests.simulated.permutations.interleaving import Deadlocked, following
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import StageConnection, of_stage


class Counting(Scenario):
    """Two sessions that add to one row, each by these statements; each answers nothing."""

    leading = ("^BEGIN",)

    def __init__(self, watch: psycopg.Connection[Any], *statements: Sequence[bytes]) -> None:
        self._watch, self._statements = watch, statements

    async def begin(self) -> Mapping[str, Work]:
        self._watch.execute("CREATE TABLE IF NOT EXISTS counted (name text PRIMARY KEY, value integer)")
        self._watch.execute("DELETE FROM counted")
        self._watch.execute("INSERT INTO counted VALUES ('a', 0), ('b', 0)")
        return {name: self._work(self._statements[number]) for number, name in enumerate(("one", "two"))}

    def _work(self, statements: Sequence[bytes]) -> Work:
        async def work(connection: StageConnection) -> None:
            await connection.execute(b"BEGIN")
            for statement in statements:
                await connection.execute(statement)
            await connection.commit()

        return of_stage(work)

    async def outcome(self, answers: Mapping[str, object]) -> object:
        return self._watch.execute("SELECT sum(value) FROM counted").fetchone()

    def serial(self, order: Sequence[str]) -> object:
        return (sum(map(len, self._statements)),)


ADD = b"UPDATE counted SET value = value + 1 WHERE name = '%b'"
ADD_WHAT_WAS_READ = (
    b"UPDATE counted AS c SET value = o.value + 1 "
    b"FROM (SELECT value FROM counted WHERE name = 'a' OFFSET 0) AS o WHERE c.name = 'a'"
)


def test_sessions_that_do_not_meet_have_every_order_of_their_steps(played: Play) -> None:
    assert played(lambda watch: Counting(watch, [ADD % b"a"], [ADD % b"b"])) == comb(4, 2)


def test_a_session_that_waits_for_the_lock_of_another_goes_on_behind_its_commit(played: Play) -> None:
    # One may begin behind the other, or wait for it.
    assert played(lambda watch: Counting(watch, [ADD % b"a"], [ADD % b"a"])) == 4


def test_sessions_that_wait_for_each_other_are_found(played: Play) -> None:
    with pytest.raises(Deadlocked):
        played(lambda watch: Counting(watch, [ADD % b"a", ADD % b"b"], [ADD % b"b", ADD % b"a"]))


def test_a_lost_update_is_found_and_the_steps_that_lead_to_it_are_told(played: Play) -> None:
    with pytest.raises(Wrong, match=r"(?s)is none of.*UPDATE counted"):
        played(lambda watch: Counting(watch, [ADD_WHAT_WAS_READ], [ADD_WHAT_WAS_READ]))


def test_the_runs_follow_each_other_until_no_choice_is_left() -> None:
    assert following([(0, 2), (1, 2), (0, 1)]) == [1]
    assert following([(1, 2), (0, 1)]) is None
