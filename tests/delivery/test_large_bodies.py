"""Large bodies: one answer holds so many bytes at most, and what does not fit comes with the next."""

from typing import Any

import pytest
from mqbroker_client import Consumer, Producer

BODY = b"x" * (3 * 1024 * 1024)
# MAX_RECEIVE_BYTES is 16 MiB: an answer ends with the message that fills it.
FIT = 6
SENT = 10


@pytest.fixture
def heavy(producer: Producer, orders: str) -> str:
    """A topic with thirty megabytes in one queue."""
    for number in range(SENT):
        producer.send(orders, b"%d" % number + BODY, queue_id=1, tags="heavy")
    return orders


@pytest.mark.parametrize("wishes", [{}, {"filter": "heavy"}], ids=["all", "filtered"])
def test_a_receive_ends_with_the_message_that_fills_it_and_the_next_goes_on(
    consumer: Consumer, heavy: str, wishes: dict[str, Any]
) -> None:
    answers = [consumer.receive(heavy, **wishes), consumer.receive(heavy, **wishes)]

    assert [[delivery.body[:1] for delivery in answer] for answer in answers] == [
        [b"%d" % number for number in range(FIT)],
        [b"%d" % number for number in range(FIT, SENT)],
    ]


def test_a_pull_ends_with_the_message_that_fills_it_and_says_where_to_go_on(consumer: Consumer, heavy: str) -> None:
    page = consumer.pull(heavy, 1, 0, max=SENT)

    assert len(page.messages) == FIT
    assert page.next_offset == FIT
    assert len(consumer.pull(heavy, 1, page.next_offset, max=SENT).messages) == SENT - FIT
