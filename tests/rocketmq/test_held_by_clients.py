"""What a process keeps of the deliveries that clients hold is bounded, and no key takes the others' places."""

import gc
from collections.abc import Iterator

import pytest

from delivery.receive import receives
from delivery.receive.attempts import Attempts
from delivery.receive.receives import Receive
from mqbroker.rocketmq.renewals import MAX_RENEWED, Renewal, Renewals
from store.process.answer_budget import Hold
from tests.broker import databases
from tests.store.keeper import Keeper

OF_KEY = MAX_RENEWED * 5 // 8


@pytest.fixture
def keeper(prepared: str) -> Iterator[Keeper]:
    """The broker's own code on a database of the test's own."""
    with databases.copied(prepared) as url, Keeper(url) as keeper:
        yield keeper


@pytest.mark.usefixtures("keeper")
def test_a_key_whose_clients_hold_very_many_deliveries_leaves_room_to_others() -> None:
    renewals = Renewals()

    renewals.begin(("greedy", "client"), "mail", map(str, range(MAX_RENEWED)))
    of_greedy = kept()
    renewals.begin(("other", "client"), "mail", ["another"])

    assert (of_greedy, kept()) == (OF_KEY, OF_KEY + 1)
    renewals.end(map(str, range(MAX_RENEWED)))
    assert kept() == 1


def kept() -> int:
    """How many deliveries are kept to be extended."""
    return sum(type(each) is Renewal for each in gc.get_objects())


def test_a_key_keeps_its_latest_attempts_and_takes_none_of_another_key(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of which a key may have 40.
    monkeypatch.setattr("delivery.receive.attempts.MAX_DELIVERIES", 64)
    attempts = Attempts()
    for number in range(66):
        keeper.send("orders", str(number))

    async def receive(key: str, attempt: str, most: int) -> None:
        with Hold(key) as hold:
            wanted = Receive(topic="orders", max_messages=most)
            attempts.keep(attempt, await receives.entries("mail", wanted, hold))

    async def received_again(key: str, attempt: str) -> int:
        with Hold(key) as hold:
            found = await attempts.again("mail", attempt, hold, None)
            return 0 if found is None else len(list(found))

    keeper.do(receive("other", "1", 2))
    for attempt in ("1", "2"):
        keeper.do(receive("greedy", attempt, 32))

    assert [keeper.do(received_again("greedy", attempt)) for attempt in ("1", "2")] == [0, 32]
    assert keeper.do(received_again("other", "1")) == 2
