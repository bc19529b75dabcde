"""RocketMQ's topics of half messages and of ends can be read: as views of the rows that the broker keeps."""

from collections.abc import Iterator

import pytest
from mqbroker_client import Admin, Message, Producer

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
OP = "RMQ_SYS_TRANS_OP_HALF_TOPIC"


@pytest.fixture
def ahead(wire: Wire) -> "Reader":
    """Reads from now on."""
    return Reader(wire)


class Reader:
    """An operator who pulls both topics from where they end now."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.ends = {name: self.pull(name)["max_offset"] for name in (HALF, OP)}

    def pull(self, name: str, **query: int) -> Document:
        words = "&".join(f"{word}={value}" for word, value in query.items())
        answer = self.wire.get(f"/v1/topics/{name}/queues/0/messages?{words}")
        assert answer.status == 200, answer
        found: Document = answer.document
        return found

    def new(self, name: str, most: int = 1000) -> Iterator[Document]:
        """What came since, page by page."""
        offset = self.ends[name]
        while True:
            page = self.pull(name, offset=offset, max=most)
            yield from page["messages"]
            if page["next_offset"] == offset or not page["messages"]:
                return
            offset = page["next_offset"]

    def of(self, name: str, *transactions: object) -> list[Document]:
        """Those of these transactions."""
        wanted = {str(one) for one in transactions}
        return [one for one in self.new(name) if one["message"]["transaction_id"] in wanted]


def test_a_half_message_is_in_the_half_topic_with_the_properties_of_rocketmq(
    ahead: Reader, producer: Producer, orders: str
) -> None:
    message = Message(orders, b"order 1", queue_id=2, tags="paid", properties={"region": "eu"})

    transaction = producer.begin_messages([message])

    [found] = ahead.of(HALF, transaction.transaction_id)
    assert (found["queue_id"], found["queue_offset"]) == (0, transaction.commit_log_offset)
    assert found["message"]["topic"] == HALF
    assert (found["message"]["body"], found["message"]["tags"]) == ("order 1", "paid")
    assert found["message"]["properties"] == {
        "REAL_TOPIC": orders,
        "REAL_QID": "2",
        "PGROUP": producer.group,
        "TRAN_MSG": "true",
        "UNIQ_KEY": str(message.message_id),
        "TRANSACTION_CHECK_TIMES": "0",
        "region": "eu",
    }


def test_an_end_is_in_the_op_topic_with_the_tag_d_and_the_offset_of_its_half_message(
    ahead: Reader, producer: Producer, orders: str
) -> None:
    committed = producer.begin(orders, b"order 1")
    several = producer.begin_messages([Message(orders, b"order 2"), Message(orders, b"order 3")])
    undecided = producer.begin(orders, b"order 4")
    undecided.unknown("not yet")
    committed.commit()
    several.rollback()

    ids = [one.transaction_id for one in (committed, several, undecided)]
    ends = ahead.of(OP, *ids)

    assert [(one["message"]["tags"], one["message"]["properties"]["STATE"]) for one in ends] == [
        ("d", "COMMIT"),
        ("d", "ROLLBACK"),
    ]
    halves = ahead.of(HALF, *ids)
    by_transaction: dict[str, list[str]] = {}
    for half in halves:
        by_transaction.setdefault(half["message"]["transaction_id"], []).append(str(half["queue_offset"]))
    assert [one["message"]["body"].split(",") for one in ends] == [by_transaction[str(id_)] for id_ in ids[:2]]
    assert len(halves) == 4
    # A decided half message stays in the topic, as in RocketMQ, until its segment is gone.
    assert ["TRANSACTION_CHECK_TIMES" in half["message"]["properties"] for half in halves] == [False] * 3 + [True]


def test_checks_are_counted_in_the_half_topic(ahead: Reader, producer: Producer, orders: str) -> None:
    Admin(producer.broker).create_producer_group(producer.group)
    transaction = producer.begin(orders, b"order 1", check_immunity_seconds=0)

    producer.broker.call(
        "POST", f"/v1/producer-groups/{producer.group}/checks/receive", {"wait_seconds": 10, "max_transactions": 1}
    )

    def checked() -> bool:
        [found] = ahead.of(HALF, transaction.transaction_id)
        return bool(found["message"]["properties"]["TRANSACTION_CHECK_TIMES"] == "1")

    eventually(checked)


def test_pages_follow_each_other_and_a_message_that_was_sent_at_once_is_in_neither(
    ahead: Reader, producer: Producer, orders: str
) -> None:
    transactions = []
    for number in range(10):
        producer.send(orders, b"sent at once")
        transaction = producer.begin(orders, f"order {number}".encode())
        transaction.commit()
        transactions.append(str(transaction.transaction_id))

    for name in (HALF, OP):
        found = [one["message"]["transaction_id"] for one in ahead.new(name, most=3)]
        assert [one for one in found if one in transactions] == transactions
        assert None not in found


@pytest.mark.parametrize("name", [HALF, OP])
def test_the_list_has_the_newest_first(wire: Wire, producer: Producer, orders: str, name: str) -> None:
    transactions = [producer.begin(orders, f"order {number}".encode()) for number in range(5)]
    for transaction in transactions:
        transaction.commit()
    wanted = [str(one.transaction_id) for one in transactions]
    found: list[str] = []
    further = ""
    while further is not None and len(found) < 200 and wanted[0] not in found:
        page = wire.get(f"/v1/messages?topic={name}&limit=2{further}").document
        found += [one["message"]["transaction_id"] for one in page["results"]]
        further = page["next"] and f"&cursor={page['next']}"

    assert [one for one in found if one in wanted] == wanted[::-1]


def test_only_a_key_that_manages_reads_them(broker: RunningBroker, wire: Wire) -> None:
    scopes = ["read:*", "produce:*", "consume:*"]
    made = wire.post("/v1/api-keys", {"name": characters.name("reader"), "scopes": scopes})

    for path in (f"/v1/topics/{HALF}/queues/0/messages", f"/v1/messages?topic={OP}"):
        answer = Wire(broker.url, made.document["key"]).get(path)
        assert (answer.status, answer.problem["code"]) == (403, "no_permission")


@pytest.mark.parametrize("name", [HALF, OP])
def test_they_are_read_from_offset_0_on_and_stand_in_the_list_of_topics(
    wire: Wire, producer: Producer, orders: str, name: str
) -> None:
    producer.begin(orders, b"order 1").commit()

    pulled = wire.get(f"/v1/topics/{name}/queues/0/messages?offset=0&max=1")
    pages = [wire.get("/v1/topics?limit=2").document]
    while pages[-1]["next"]:
        pages.append(wire.get(f"/v1/topics?limit=2&cursor={pages[-1]['next']}").document)
    listed = [topic for page in pages for topic in page["results"]]

    assert (pulled.status, pulled.document["min_offset"]) == (200, 0)
    assert len(pulled.document["messages"]) == 1
    assert [one["name"] for one in listed] == sorted(one["name"] for one in listed)
    [found] = [one for one in listed if one["name"] == name]
    assert (found["queues"], found["permission"], found["system"]) == (1, "r", True)


def test_half_messages_are_looked_up_by_their_key_the_newest_first(wire: Wire, producer: Producer, orders: str) -> None:
    key = characters.name("key")
    begun = [producer.begin(orders, f"order {number}".encode(), keys=[key]) for number in range(3)]
    begun[0].commit()
    producer.send(orders, b"sent at once", keys=[key])

    first = wire.get(f"/v1/messages?topic={HALF}&key={key}&limit=2").document
    rest = wire.get(f"/v1/messages?topic={HALF}&key={key}&limit=2&cursor={first['next']}").document
    none = wire.get(f"/v1/messages?topic={HALF}&key={key}-other").document

    found = [one["message"] for one in (*first["results"], *rest["results"])]
    assert [one["transaction_id"] for one in found] == [str(one.transaction_id) for one in reversed(begun)]
    assert {one["topic"] for one in found} == {HALF}
    assert {one["properties"]["REAL_TOPIC"] for one in found} == {orders}
    assert (none["results"], none["next"]) == ([], None)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (f"/v1/topics/{HALF}/queues/1/messages", 422, "queue_illegal"),
        (f"/v1/topics/{OP}/queues/0/messages?offset=9000000000000", 416, "offset_out_of_range"),
        (f"/v1/topics/{OP}/queues/0/messages?max=1001", 422, "message_illegal"),
        (f"/v1/topics/{OP}/queues/0/messages?wait_seconds=1", 422, "message_illegal"),
        (f"/v1/messages?topic={OP}&key=order-1", 422, "message_illegal"),
    ],
)
def test_what_they_do_not_have_is_refused(wire: Wire, path: str, status: int, code: str) -> None:
    answer = wire.get(path)

    assert (answer.status, answer.problem["code"]) == (status, code), answer
