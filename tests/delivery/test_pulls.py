"""Pull by offset: reads a queue from any offset within its bounds, and remembers nothing of the reader."""

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.wire import Wire, problem


@pytest.fixture
def filled(producer: Producer, orders: str) -> str:
    """A topic with five messages in its queue 2."""
    for number in range(5):
        producer.send(orders, f"order {number}".encode(), queue_id=2)
    return orders


def test_a_page_tells_where_it_goes_on_and_where_the_queue_ends(consumer: Consumer, filled: str) -> None:
    page = consumer.pull(filled, 2, 1, max=2)

    assert bodies(page.messages) == [b"order 1", b"order 2"]
    assert [entry.queue_offset for entry in page.messages] == [1, 2]
    assert (page.next_offset, page.min_offset, page.max_offset) == (3, 0, 5)


def test_a_queue_reads_the_same_as_often_as_it_is_read(consumer: Consumer, filled: str) -> None:
    first = consumer.pull(filled, 2, 0)
    consumer.receive(filled)

    assert consumer.pull(filled, 2, 0) == first


def test_the_end_of_a_queue_is_an_empty_page(consumer: Consumer, filled: str) -> None:
    page = consumer.pull(filled, 2, 5)

    assert (list(page.messages), page.next_offset, page.max_offset) == ([], 5, 5)


def test_an_empty_queue_has_its_beginning_and_its_end_at_0(consumer: Consumer, filled: str) -> None:
    page = consumer.pull(filled, 0, 0)

    assert (list(page.messages), page.next_offset, page.min_offset, page.max_offset) == ([], 0, 0, 0)


@pytest.mark.parametrize("offset", [-1, 6, 2**62])
def test_an_offset_outside_of_the_queue_is_refused_with_both_bounds(wire: Wire, filled: str, offset: int) -> None:
    answer = wire.get(f"/v1/topics/{filled}/queues/2/messages?offset={offset}")

    assert answer.problem == problem(
        416,
        "offset_out_of_range",
        f"Queue 2 of {filled} has no offset {offset}: its offsets begin at 0 and end before 5.",
        min_offset=0,
        max_offset=5,
    )


@pytest.mark.parametrize(
    ("asked", "status", "code", "detail"),
    [
        (
            "4/messages?offset=0",
            422,
            "queue_illegal",
            "The topic {topic} has no queue 4: its queues are 0 to 3.",
        ),
        ("2/messages?offset=0&max=0", 422, "message_illegal", "max 0 is not between 1 and 1000."),
        ("2/messages?offset=0&max=1001", 422, "message_illegal", "max 1001 is not between 1 and 1000."),
        ("2/messages?offset=--1", 422, "message_illegal", "offset='--1' is not a whole number of at most 64 bits."),
        ("2/messages?offset=one", 422, "message_illegal", "offset='one' is not a whole number of at most 64 bits."),
        (
            "2/messages?offset=9223372036854775808",
            422,
            "message_illegal",
            "offset='9223372036854775808' is not a whole number of at most 64 bits.",
        ),
        ("2/messages?offset=0&wait_seconds=21", 422, "message_illegal", "wait_seconds 21 is not between 0 and 20."),
    ],
)
def test_what_a_pull_asks_for_has_bounds(
    wire: Wire, filled: str, asked: str, status: int, code: str, detail: str
) -> None:
    answer = wire.get(f"/v1/topics/{filled}/queues/{asked}")

    assert answer.problem == problem(status, code, detail.replace("{topic}", filled))


def test_a_topic_that_does_not_exist_is_not_pulled(wire: Wire, orders: str) -> None:
    assert wire.get(f"/v1/topics/{orders}/queues/0/messages").problem == problem(
        404, "topic_not_exist", f"There is no topic {orders}: PUT /v1/topics/{orders} makes it."
    )
