"""The rules of a message's fields, law by law: the same through a send, a half message, and both within a bulk."""

from collections.abc import Callable

import pytest

from tests.broker.wire import Document, Wire, problem

GROUP = {"producer_group": "order-service"}


def by_send(wire: Wire, message: Document) -> Document:
    return wire.post("/v1/messages", message).problem


def by_half(wire: Wire, message: Document) -> Document:
    return wire.post("/v1/transactions", {**message, **GROUP}).problem


def by_half_of_several(wire: Wire, message: Document) -> Document:
    good = {"topic": "orders", "body": "order 1"}
    return wire.post("/v1/transactions", {"messages": [good, message], **GROUP}).problem


def by_bulk_send(wire: Wire, message: Document) -> Document:
    return wire.bulk({"op": "send", **message})[0]


def by_bulk_half(wire: Wire, message: Document) -> Document:
    return wire.bulk({"op": "half", **message, **GROUP})[0]


WAYS = [by_send, by_half, by_half_of_several, by_bulk_send, by_bulk_half]
BOTH_BODIES = "A message must have exactly one of body and body_base64: give one of them."
LATEST = 40 * 86400

# What is wrong with a message, and the refusal it meets. `topic` and `body` are there unless the law says otherwise.
LAWS: dict[str, tuple[Document, int, str, str]] = {
    "no body": ({"body": None}, 422, "message_illegal", BOTH_BODIES),
    "two bodies": ({"body_base64": "eA=="}, 422, "message_illegal", BOTH_BODIES),
    "an empty body": ({"body": ""}, 422, "message_illegal", "The body is empty: give at least one byte."),
    "an empty base64": (
        {"body": None, "body_base64": ""},
        422,
        "message_illegal",
        "The body is empty: give at least one byte.",
    ),
    "no base64": (
        {"body": None, "body_base64": "e-_="},
        422,
        "message_illegal",
        "body_base64 is not base64 (Only base64 data is allowed): use the standard alphabet.",
    ),
    "empty tags": (
        {"tags": ""},
        422,
        "message_illegal",
        tags_refused := "tags '' cannot be used: give a text that is not blank, without | and control characters.",
    ),
    "blank tags": ({"tags": " \u2003"}, 422, "message_illegal", tags_refused.replace("''", "' \\u2003'")),
    "two tags": ({"tags": "paid|sent"}, 422, "message_illegal", tags_refused.replace("''", "'paid|sent'")),
    "tags with NUL": ({"tags": "pa\x00id"}, 422, "message_illegal", tags_refused.replace("''", "'pa\\x00id'")),
    "tags with DEL": ({"tags": "paid\x7f"}, 422, "message_illegal", tags_refused.replace("''", "'paid\\x7f'")),
    "an empty key": (
        {"keys": ["a", ""]},
        422,
        "message_illegal",
        key_refused := "keys holds '': a key is not blank and has no blanks or control characters.",
    ),
    "a key with a blank": ({"keys": ["a b"]}, 422, "message_illegal", key_refused.replace("''", "'a b'")),
    "a key with a tab": ({"keys": ["a\tb"]}, 422, "message_illegal", key_refused.replace("''", "'a\\tb'")),
    "a key with NUL": ({"keys": ["\x00"]}, 422, "message_illegal", key_refused.replace("''", "'\\x00'")),
    "a reserved property": (
        {"properties": {"mine": "1", "TRAN_MSG": "true", "DELAY": "3"}},
        422,
        "message_illegal",
        "The property DELAY is reserved by the broker: use the field delay_level.",
    ),
    "a reserved property that no field replaces": (
        {"properties": {"MIN_OFFSET": "1"}},
        422,
        "message_illegal",
        "The property MIN_OFFSET is reserved by the broker: use another name.",
    ),
    "a property without a name": (
        {"properties": {"": "x"}},
        422,
        "message_illegal",
        "A property has an empty name: give each property a name.",
    ),
    "too many properties": (
        {"properties": {str(number): "" for number in range(129)}},
        422,
        "properties_too_large",
        "There are 129 properties, the limit is 128.",
    ),
    "too large properties": (
        {"properties": {"p": "é" * 8000}, "tags": "t" * 300, "keys": ["k" * 84]},
        422,
        "properties_too_large",
        "Properties, tags and keys have 16385 bytes together, the limit is 16384.",
    ),
    "an empty sharding key": (
        {"sharding_key": ""},
        422,
        "message_illegal",
        sharding_refused
        := "sharding_key '' cannot be used: give 1 to 64 characters, not blank, without control characters.",
    ),
    "a long sharding key": (
        {"sharding_key": "k" * 65},
        422,
        "message_illegal",
        sharding_refused.replace("''", repr("k" * 65)),
    ),
    "a sharding key with NUL": (
        {"sharding_key": "\x00"},
        422,
        "message_illegal",
        sharding_refused.replace("''", "'\\x00'"),
    ),
    "a queue below": (
        {"queue_id": -1},
        422,
        "queue_illegal",
        "The topic {topic} has no queue -1: its queues are 0 to 3.",
    ),
    "a queue above": (
        {"queue_id": 4},
        422,
        "queue_illegal",
        "The topic {topic} has no queue 4: its queues are 0 to 3.",
    ),
    "two delays": (
        {"delay_level": 1, "delay_seconds": 5},
        422,
        "delay_illegal",
        "delay_level and delay_seconds exclude each other: give at most one of them.",
    ),
    "a delay and a time": (
        {"delay_seconds": 0, "deliver_at": "2026-01-01T00:00:00Z"},
        422,
        "delay_illegal",
        "delay_seconds and deliver_at exclude each other: give at most one of them.",
    ),
    "a level below": (
        {"delay_level": -1},
        422,
        "delay_illegal",
        "delay_level -1 is below 0: give a level from 1 to the highest level.",
    ),
    "seconds below": ({"delay_seconds": -0.5}, 422, "delay_illegal", "delay_seconds -0.5 is below 0: give 0 or more."),
    "too many seconds": (
        {"delay_seconds": LATEST + 1},
        422,
        "delay_illegal",
        f"delay_seconds {float(LATEST + 1)} is above the maximum of {LATEST}.",
    ),
    "too late": (
        {"deliver_at": "2999-01-01T00:00:00Z"},
        422,
        "delay_illegal",
        f"deliver_at 2999-01-01T00:00:00+00:00 is too far ahead: the maximum is {LATEST} seconds.",
    ),
    "born before time": (
        {"born_at": "0001-01-01T00:00:00+14:00"},
        422,
        "message_illegal",
        "born_at 0001-01-01T00:00:00+14:00 cannot be used: give a time in the years 1 to 9999, in UTC.",
    ),
    "born after time": (
        {"born_at": "9999-12-31T23:59:59-14:00"},
        422,
        "message_illegal",
        "born_at 9999-12-31T23:59:59-14:00 cannot be used: give a time in the years 1 to 9999, in UTC.",
    ),
    "no topic": (
        {"topic": None},
        422,
        "topic_illegal",
        "topic is missing: give 1 to 127 letters, digits and % | _ -.",
    ),
    "a topic with a blank": (
        {"topic": "or ders"},
        422,
        "topic_illegal",
        topic_refused := "topic 'or ders' is not a valid topic name: 1 to 127 letters, digits and % | _ -.",
    ),
    "a topic with NUL": (
        {"topic": "orders\x00"},
        422,
        "topic_illegal",
        topic_refused.replace("'or ders'", "'orders\\x00'"),
    ),
    "a topic with a line end": (
        {"topic": "orders\n"},
        422,
        "topic_illegal",
        topic_refused.replace("'or ders'", "'orders\\n'"),
    ),
    "a long topic": ({"topic": "o" * 128}, 422, "topic_illegal", topic_refused.replace("'or ders'", repr("o" * 128))),
    **{
        f"the topic {name}": (
            {"topic": name},
            403,
            "topic_forbidden",
            f"The topic {name} belongs to the broker: send to a topic of your own.",
        )
        for name in (
            "RMQ_SYS_TRANS_HALF_TOPIC",
            "RMQ_SYS_TRANS_OP_HALF_TOPIC",
            "TRANS_CHECK_MAX_TIME_TOPIC",
            "SCHEDULE_TOPIC_XXXX",
            "%RETRY%coupon-service",
            "%DLQ%coupon-service",
        )
    },
}  # fmt: skip -- a law to a line, where it fits


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_message_that_breaks_a_rule_is_refused_with_the_same_words_by_every_way_in(
    wire: Wire, orders: str, way: Callable[[Wire, Document], Document]
) -> None:
    answers, refusals = {}, {}
    for law, (changes, status, code, detail) in LAWS.items():
        message = {"topic": orders, "body": "order 1", **changes}
        answers[law] = way(wire, {name: value for name, value in message.items() if value is not None})
        refusals[law] = problem(status, code, detail.replace("{topic}", orders))

    assert answers == refusals


# What is at the edge of a rule, and allowed.
EDGES: dict[str, Document] = {
    "tags": {"tags": "paid and sent, at 100 % ✓"},
    "properties": {"properties": {str(number): "" for number in range(128)}},
    "bytes of properties": {"properties": {"p": "é" * 8000}, "tags": "t" * 300, "keys": ["k" * 83]},
    "sharding key": {"sharding_key": "é" * 64},
    "queue": {"queue_id": 3},
    "no delay at all": {"delay_level": 0, "delay_seconds": 0},
    "longest timer": {"delay_seconds": LATEST},
    "level above the highest": {"delay_level": 2**40},
    "time that is over": {"deliver_at": "0001-01-01T00:00:00Z"},
    "no properties": {"properties": {}, "keys": []},
}


@pytest.mark.parametrize("edge", EDGES)
def test_a_message_at_the_edge_of_a_rule_is_taken(wire: Wire, orders: str, edge: str) -> None:
    message = {"topic": orders, "body": "order 1", **EDGES[edge]}

    answers = [wire.post("/v1/messages", message), wire.post("/v1/transactions", {**message, **GROUP})]

    assert [answer.status for answer in answers] == [201, 201], answers
