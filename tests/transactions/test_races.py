"""Races: a thousand transactions, each ended four ways at once: by its producer, by another, and by check-back."""

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.endpoints import ProducerEndpoint
from tests.broker.races import Said, race, wrongs
from tests.broker.running import RunningBroker

# A decision that is read, and written a moment later, is found by 240 of them: tests/chaos/test_mutants.py.
TRANSACTIONS = [1000, pytest.param(3000, marks=pytest.mark.long)]


@pytest.mark.parametrize("transactions", TRANSACTIONS)
async def test_of_four_ends_at_once_one_decides_and_deliveries_agree_with_it(
    broker: RunningBroker,
    producer: Producer,
    consumer: Consumer,
    endpoint: ProducerEndpoint,
    orders: str,
    transactions: int,
) -> None:
    found, statuses = await race(broker, endpoint, (producer.group, consumer.group), orders, transactions)

    assert statuses.keys() == {200, 409}
    assert found == []


GOOD_ENDS = [
    Said("a", "COMMIT", 200, "COMMITTED"),
    Said("a", "ROLLBACK", 409, None),
    Said("b", "COMMIT", 409, None),
    Said("b", "ROLLBACK", 200, "ROLLED_BACK"),
]
GOOD_STATES = {"a": "COMMITTED", "b": "ROLLED_BACK"}


@pytest.mark.parametrize(
    ("said", "states_now", "delivered", "wrong"),
    [
        ([], {}, {}, "a is COMMITTED and came 0 times"),
        ([], {}, {"a": 2}, "a is COMMITTED and came 2 times"),
        ([], {}, {"a": 1, "b": 1}, "b is ROLLED_BACK and came 1 times"),
        ([], {}, {"a": 1, "x": 1}, "x came, and is none of them"),
        ([], {"b": "PREPARED"}, {"a": 1}, "b is PREPARED after its ends"),
        (
            [second := Said("a", "ROLLBACK", 200, "ROLLED_BACK")],
            {},
            {"a": 1},
            f"a is COMMITTED and {second} was answered otherwise",
        ),
        (
            [repeat := Said("a", "COMMIT", 409, None)],
            {},
            {"a": 1},
            f"a is COMMITTED and {repeat} was answered otherwise",
        ),
        (
            [failure := Said("b", "COMMIT", 503, None)],
            {},
            {"a": 1},
            f"b is ROLLED_BACK and {failure} was answered otherwise",
        ),
    ],
)
def test_the_checker_of_races_catches_every_wrong(
    said: list[Said], states_now: dict[str, str], delivered: dict[str, int], wrong: str
) -> None:
    assert wrongs(GOOD_ENDS, GOOD_STATES, {"a": 1}) == []

    assert wrong in wrongs(GOOD_ENDS + said, GOOD_STATES | states_now, delivered)
