"""Messages of one sharding key keep the order in which they were given, whatever way each of them is written."""

import json
from collections.abc import Sequence

import pytest

from tests.broker.wire import Wire

LARGE = "x" * 1_100_000
SMALL = "small"
BULKS = {
    "a large one behind small ones": [SMALL, SMALL, LARGE],
    "small ones behind a large one behind a small one": [SMALL, LARGE, SMALL, SMALL],
    "large ones among small ones": [SMALL, LARGE, SMALL, LARGE, SMALL],
}


@pytest.mark.parametrize("bodies", BULKS.values(), ids=BULKS)
def test_messages_of_one_key_in_a_bulk_keep_their_order_however_large_they_are(
    wire: Wire, orders: str, bodies: Sequence[str]
) -> None:
    """The first entry of a queue is left out by its pipelined batch, which takes no message of 1 MiB."""
    keyed = {"op": "send", "topic": orders, "sharding_key": "customer-7"}

    results = wire.bulk(*({**keyed, "body": f"{number} {body}"} for number, body in enumerate(bodies)))

    assert [result["status"] for result in results] == [201] * len(bodies), json.dumps(results)[:400]
    assert [result["queue_offset"] for result in results] == list(range(len(bodies)))


def test_small_messages_behind_a_large_one_of_their_key_stay_behind_it(wire: Wire, orders: str) -> None:
    wire.bulk({"op": "send", "topic": orders, "queue_id": 0, "body": SMALL})
    keyed = {"op": "send", "topic": orders, "queue_id": 0, "sharding_key": "customer-7"}

    for _ in range(10):
        results = wire.bulk(*({**keyed, "body": body} for body in (SMALL, SMALL, LARGE, SMALL, SMALL)))
        offsets = [result["queue_offset"] for result in results]
        assert offsets == sorted(offsets)
