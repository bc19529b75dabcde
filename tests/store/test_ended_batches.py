"""A stepwise batch whose session was ended gets longer the next time: a slow process is not a stopped one."""

import asyncio
from collections.abc import Sequence
from typing import Self

import psycopg
import pytest

from store.commit import writer
from store.commit.attempts import MAX_ATTEMPTS_ALONE
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.errors import SystemBusy
from tests.store.keeper import Keeper

pytestmark = pytest.mark.chaos
END = "SELECT pg_terminate_backend(%s, 10000)"


class Look(Operation[list[str]]):
    """Reads in each attempt how long its session may be silent, and has its first sessions ended by the server."""

    __slots__ = ("at_commit", "ends", "limits", "url")

    def __init__(self, url: str, ends: int, *, at_commit: bool = False) -> None:
        super().__init__()
        self.url = url
        self.ends = ends
        self.at_commit = at_commit
        self.limits: list[str] = []

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            shown = await batch.connection.execute(b"SHOW idle_in_transaction_session_timeout")
            one.limits.append((await shown.fetchall())[0][0])
            if len(one.limits) <= one.ends:
                await asyncio.to_thread(one.end, batch.connection.pgconn.backend_pid)
                if not one.at_commit:
                    await batch.connection.execute(b"SELECT 1")
            one.result = one.limits

    def end(self, pid: int) -> None:
        """Ends the session of the batch, and waits until the server has."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(END, [pid])


@pytest.mark.parametrize("at_commit", [False, True], ids=["between two steps", "before the commit"])
@pytest.mark.parametrize(
    ("ends", "limits"),
    [
        (0, ["500ms"]),
        (1, ["500ms", "1s"]),
        (4, ["500ms", "1s", "2s", "2s", "2s"]),
    ],
)
def test_the_time_doubles_behind_each_ended_batch_and_begins_anew_behind_a_written_one(
    keeper: Keeper, ends: int, limits: list[str], at_commit: bool
) -> None:
    assert keeper.do(writer.run(Look(keeper.url, ends, at_commit=at_commit))) == limits
    assert keeper.do(writer.run(Look(keeper.url, 0))) == ["500ms"]


def test_a_batch_that_is_refused_at_last_leaves_its_time_to_the_next_one(keeper: Keeper) -> None:
    with pytest.raises(SystemBusy, match="ended the session of this write several times"):
        keeper.do(writer.run(Look(keeper.url, MAX_ATTEMPTS_ALONE)))

    assert keeper.do(writer.run(Look(keeper.url, 0))) == ["2s"]
    assert keeper.do(writer.run(Look(keeper.url, 0))) == ["500ms"]
