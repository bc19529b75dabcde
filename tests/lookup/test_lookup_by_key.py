"""Messages of a topic are found by any of their keys, the newest first, page by page."""

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire, problem
from tests.lookup.looking import bodies, listed, send

# Above this a key is so common that its messages are looked for along the log.
COMMON = 10_000
PAGE_BYTES = 16 * 1024 * 1024


def test_a_message_is_found_by_each_of_its_keys_the_newest_first(wire: Wire, orders: str) -> None:
    for number in range(3):
        send(wire, orders, f"order {number}", keys=[f"o-{number}", "c-1"])
    send(wire, orders, "no key")

    assert bodies(listed(wire, topic=orders, key="o-1")) == ["order 1"]
    assert bodies(listed(wire, topic=orders, key="c-1")) == ["order 2", "order 1", "order 0"]
    assert listed(wire, topic=orders, key="o-") == []


def test_a_key_is_looked_for_in_its_topic_only(wire: Wire, orders: str, coupons: str) -> None:
    send(wire, orders, "order", keys=["o-1"])
    send(wire, coupons, "coupon", keys=["o-1"])

    assert bodies(listed(wire, topic=coupons, key="o-1")) == ["coupon"]


@pytest.mark.parametrize("limit", [1, 3, 4, 10, 500])
def test_pages_hold_each_message_once(wire: Wire, orders: str, limit: int) -> None:
    for number in range(10):
        send(wire, orders, str(number), keys=["c-1", f"o-{number}"])

    assert bodies(listed(wire, limit, topic=orders, key="c-1")) == [str(number) for number in reversed(range(10))]


def test_a_key_finds_invisible_messages_too(wire: Wire, producer: Producer, orders: str) -> None:
    half = wire.post(
        "/v1/transactions", {"producer_group": producer.group, "topic": orders, "body": "half", "keys": ["o-1"]}
    ).document
    send(wire, orders, "later", keys=["o-1"], delay_seconds=600)
    send(wire, orders, "now", keys=["o-1"])

    now, later, undecided = listed(wire, topic=orders, key="o-1")

    assert bodies([now, later, undecided]) == ["now", "later", "half"]
    assert (later["queue_offset"], undecided["queue_offset"]) == (None, None)
    assert undecided["message"]["transaction_id"] == half["transaction_id"]
    assert now["queue_offset"] is not None


def test_a_key_is_looked_for_within_a_time(wire: Wire, orders: str) -> None:
    times = [send(wire, orders, str(number), keys=["c-1"])["stored_at"] for number in range(4)]

    assert bodies(listed(wire, topic=orders, key="c-1", from_=times[1], to=times[3])) == ["2", "1"]
    assert bodies(listed(wire, topic=orders, key="c-1", to=times[1])) == ["0"]
    assert bodies(listed(wire, topic=orders, key="c-1", from_=times[3])) == ["3"]


@pytest.mark.one_cell(because="it looks in the control's cell", control=True)
def test_a_dead_letter_is_found_by_key_among_its_groups(wire: Wire, consumer: Consumer, orders: str) -> None:
    wire.call("PUT", f"/v1/consumer-groups/{consumer.group}", b'{"retry_policy": {"kind": "none"}}')
    for number in range(2):
        send(wire, orders, str(number), keys=["c-1"])
    eventually(lambda: consumer.nack(consumer.receive(orders, max_messages=1)))

    dead_letters = f"%DLQ%{consumer.group}"
    found = eventually(lambda: listed(wire, topic=dead_letters, key="c-1", cell="c0"))

    assert len(found) == 1
    assert found[0]["message"]["topic"] == orders
    assert (found[0]["queue_id"], found[0]["queue_offset"]) == (0, 0)


def test_a_key_that_very_many_messages_have_is_looked_for_along_the_log(wire: Wire, orders: str) -> None:
    common = characters.name("everything")
    for thousand in range(COMMON // 1000 + 1):
        sends = [
            {"op": "send", "topic": orders, "body": f"{thousand * 1000 + number}", "keys": [common]}
            for number in range(1000)
        ]
        assert {result["status"] for result in wire.bulk(*sends)} == {201}
    send(wire, orders, "last", keys=[common, "o-1"])

    found = bodies(listed(wire, 500, topic=orders, key=common))

    assert found[0] == "last"
    assert len(found) == len(set(found)) == COMMON + 1001


def test_a_page_ends_before_its_bodies_are_too_much(wire: Wire, orders: str) -> None:
    half_a_page = "x" * (4 * 1024 * 1024)
    for number in range(5):
        send(wire, orders, half_a_page, keys=["c-1", str(number)])

    first = wire.get(f"/v1/messages?topic={orders}&key=c-1").document

    assert len(first["results"]) == PAGE_BYTES // len(half_a_page)
    rest = wire.get(f"/v1/messages?topic={orders}&key=c-1&cursor={first['next']}").document
    assert [entry["message"]["keys"][1] for entry in (*first["results"], *rest["results"])] == ["4", "3", "2", "1", "0"]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("query", "code", "detail"),
    [
        (
            "key=",
            "message_illegal",
            "key '' is not a valid key: a key is not blank and has no blanks or control characters.",
        ),
        (
            "key=a+b",
            "message_illegal",
            "key 'a b' is not a valid key: a key is not blank and has no blanks or control characters.",
        ),
        ("limit=0", "message_illegal", "limit 0 is not between 1 and 500."),
        ("limit=501", "message_illegal", "limit 501 is not between 1 and 500."),
        ("limit=ten", "message_illegal", "limit='ten' is not a whole number of at most 64 bits."),
        (
            "cursor=5",
            "message_illegal",
            "cursor '5' does not belong to this list: give the value of `next` in the list's previous page.",
        ),
        ("from=yesterday", "message_illegal", "from 'yesterday' is not a time: give one such as 2026-01-31T12:00:00Z."),
        (
            "to=2026-01-31T12:00:00",
            "message_illegal",
            "to '2026-01-31T12:00:00' is not a time: give one such as 2026-01-31T12:00:00Z.",
        ),
        (
            "from=2026-01-31T12:00:00Z&to=2026-01-31T12:00:00Z",
            "message_illegal",
            "The time from 2026-01-31T12:00:00Z is not before the time to 2026-01-31T12:00:00Z.",
        ),
    ],
)
def test_a_query_that_cannot_be_is_refused(wire: Wire, orders: str, query: str, code: str, detail: str) -> None:
    send(wire, orders, "order")

    answer = wire.get(f"/v1/messages?topic={orders}&{query}")

    assert answer.problem == problem(422, code, detail)


def test_a_topic_must_be_named_and_there(wire: Wire, orders: str) -> None:
    assert wire.get("/v1/messages").problem == problem(
        422, "topic_illegal", "topic is missing: give 1 to 127 letters, digits and % | _ -."
    )
    assert wire.get(f"/v1/messages?topic={orders}").problem == problem(
        404, "topic_not_exist", f"There is no topic {orders}: PUT /v1/topics/{orders} makes it."
    )


def test_a_list_needs_the_scope_of_its_topic(broker: RunningBroker, wire: Wire, orders: str) -> None:
    send(wire, orders, "order")

    def status(*scopes: str) -> int:
        made = wire.post("/v1/api-keys", {"name": characters.name("key"), "scopes": scopes}).document
        return Wire(broker.url, made["key"]).get(f"/v1/messages?topic={orders}").status

    assert status(f"read:{orders}") == 200
    assert status("read:coupons-*") == 403
    assert status("manage", "produce:*", "consume:*") == 403
