"""Large bodies of JSON: read as small ones are, in steps, whatever a caller has written."""

import time
from collections.abc import Generator
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from delivery.receive.receives import Receive
from mqbroker.api import json_bodies, json_pieces, large_bodies, outline
from mqbroker.api.bulk_operations import Bulk, Given
from mqbroker.api.receipts import AckDeliveries
from sending.batches import SendBatch
from store.errors import BadRequest, MessageIllegal, Refusal
from store.messages import Message
from transactions.operations.validation import BeginTransaction

MEBIBYTE = 1024 * 1024
# A body of this length is read in pieces wherever it is cut; a multiple of no escape.
LONG = json_pieces.PIECE_BYTES * 2 + 1
# Of the processor, so that other programs do not count. Steps take 3 ms at most on an idle machine, and 100 at once.
MOST_SECONDS = 0.03

CHARACTERS = st.sampled_from(
    ("x", "é", "€", "😀", "\\n", '\\"', "\\\\", "\\u0001", "\\u00e9", "\\ud83d\\ude00", "{[,]}", " ")
)


def result_of(work: Generator[None, None, Any]) -> tuple[Any, float]:
    """What the work comes to, or its refusal, and the seconds of its longest step."""
    longest = 0.0
    while True:
        began = time.thread_time()
        try:
            next(work)
        except StopIteration as end:
            return end.value, longest
        except Refusal as refusal:
            return refusal, longest
        finally:
            longest = max(longest, time.thread_time() - began)


def repeated(unit: str, shift: int, size: int = LONG) -> str:
    return "x" * shift + unit * (size // len(unit.encode()))


@given(st.lists(CHARACTERS, min_size=1, max_size=4), st.integers(0, 11), st.sampled_from(("body", "body_base64")))
@example(["\\\\", '\\"'], 1, "body")
@example(["\\ud83d\\ude00"], 7, "body")
@settings(max_examples=40, deadline=None)
def test_a_long_text_is_read_wherever_it_is_cut(unit: list[str], shift: int, field: str) -> None:
    text = repeated("".join(unit), shift)
    message = f'{{"topic": "orders", "{field}": "{text}", "keys": ["{shift}"]}}'
    body = f'{{"producer_group": "shop", "messages": [{message}, {{"body": "x"}} , {message}]}}'.encode()

    for shape, given_body in ((Message, message.encode()), (BeginTransaction, body)):
        found, _ = result_of(large_bodies.reading(shape, given_body))
        assert found == msgspec.json.decode(given_body, type=shape)


@pytest.mark.parametrize(
    ("broken", "refusal"),
    [
        ("\\ud83d", BadRequest),
        ("\\q", BadRequest),
        ("\n", BadRequest),
        ("\\u12", BadRequest),
        ('", "topic": "coupons', BadRequest),
        ('", "body": "y', BadRequest),
        ('", "tags": 1, "keys": "', MessageIllegal),
        ('", "colour": "', MessageIllegal),
        ('"} {"', BadRequest),
        ('"]', BadRequest),
        ('", ,"', BadRequest),
    ],
)
def test_what_is_wrong_is_refused_as_in_a_small_body(broken: str, refusal: type[Refusal]) -> None:
    start, behind = '{"topic": "orders", "body": "', "" if broken.startswith('"') else "x"
    for size in (1, LONG):
        body = f'{start}{"x" * size}{broken}{behind * size}"}}'.encode()
        at_once = small_refusal(body)
        found, _ = result_of(large_bodies.reading(Message, body))
        assert (type(at_once), type(found)) == (refusal, refusal), (at_once, found)
    # A byte that is no UTF-8, at the end of a piece and within one.
    for place in (LONG // 2, json_pieces.PIECE_BYTES - len(start) - 1):
        body = start.encode() + b"x" * place + b"\xff" + b"x" * LONG + b'"}'
        assert isinstance(result_of(large_bodies.reading(Message, body))[0], BadRequest)


def small_refusal(body: bytes) -> Refusal | None:
    try:
        json_bodies.decode(Message, body)
    except Refusal as refusal:
        return refusal
    return None


@given(st.integers(0, 300), st.data())
@settings(max_examples=30, deadline=None)
def test_objects_of_a_list_are_read_as_at_once(count: int, data: st.DataObject) -> None:
    spaces = data.draw(st.sampled_from(("", " ", "\n\t")))
    message = {"body": "x" * data.draw(st.sampled_from((1, 700, 20_000))), "properties": {"body": "y", "[{,": "]}"}}
    listed = (spaces + "," + spaces).join([msgspec.json.encode(message).decode()] * count)
    body = f'{{"messages": {spaces}[{spaces}{listed}{spaces}]{spaces}, "topic": "orders"}}'.encode()

    found, _ = result_of(large_bodies.reading(SendBatch, body))

    assert found == msgspec.json.decode(body, type=SendBatch)


@pytest.mark.parametrize("listed", ["{},1,{}", "{},,{}", "{} {}", ",{}", "{},", "[{}]", '{},"x"', "{},{}]", "1"])
def test_a_list_with_something_else_is_refused(listed: str) -> None:
    body = f'{{"messages": [{listed}]}}'.encode()

    assert isinstance(result_of(large_bodies.reading(SendBatch, body))[0], Refusal)


def test_each_operation_of_a_large_bulk_is_judged_by_itself() -> None:
    send = b'{"op": "send", "topic": "orders", "body": "%s"}'
    operations = (send % (b"x" * LONG), b'{"op": "sent"}', send % b"y", b'{"op": "send", "body": "\xff"}', b'{"op": 1}')
    body = b'{"operations": [%s]}' % b",".join(operations)

    found, _ = result_of(large_bodies.reading_each(Bulk, body, Given))

    assert [type(one).__name__ for one, _ in found] == [
        "SendOperation",
        "MessageIllegal",
        "SendOperation",
        "BadRequest",
        "MessageIllegal",
    ]
    assert [size for _, size in found] == [len(one) for one in operations]
    assert (len(found[0][0].body), found[2][0].body) == (LONG, "y")


SIZE = 16 * MEBIBYTE
ONES = b"[" + b"1," * (SIZE // 2) + b"1]"
TEXTS = b"[" + b'"",' * (SIZE // 3) + b'""]'
OBJECTS = b"[" + b"{}," * (SIZE // 3) + b"{}]"
START = b'{"topic": "orders", "body": "x", '
# Name: shape, body, and what the refusal names.
HOSTILE: dict[str, tuple[Any, bytes, str]] = {
    "an unknown field": (Message, START + b'"a": ' + ONES + b"}", "unknown field `a`"),
    "an unknown field of objects": (Message, START + b'"a": ' + OBJECTS + b"}", "unknown field `a`"),
    "an unknown text": (Message, START + b'"a": "' + b"x" * SIZE + b'"}', "unknown field `a`"),
    "keys": (Message, START + b'"keys": ' + TEXTS + b"}", "'keys'"),
    "properties": (Message, START + b'"properties": {' + b'"a":"",' * (SIZE // 7) + b'"b":""}}', "'properties'"),
    "a topic twice": (Message, START + b'"topic": "x", "keys": ' + TEXTS + b"}", "'topic' twice"),
    "levels": (Message, b'{"a":' * (SIZE // 5), "levels"),
    "blanks": (Message, START + b" " * SIZE + b'"tags": "a"}', "bytes beside"),
    "digits": (Message, START + b'"queue_id": ' + b"9" * SIZE + b"}", "bytes beside"),
    "tags": (Message, START + b'"tags": "' + b"x" * SIZE + b'"}', "'tags'"),
    "a name": (Message, b'{"' + b"x" * SIZE + b'": 1}', "bytes"),
    "escapes": (Message, b'{"topic": "orders", "tags": "' + b"\\u0041" * (SIZE // 6) + b'"}', "'tags'"),
    "messages": (SendBatch, b'{"topic": "orders", "messages": ' + OBJECTS + b"}", "'messages'"),
    "messages that are none": (SendBatch, b'{"topic": "orders", "messages": ' + ONES + b"}", "'messages'"),
    "beside messages": (SendBatch, b'{"messages": [{}], "a": ' + ONES + b"}", "unknown field `a`"),
    "in a message": (SendBatch, b'{"messages": [{"keys": ' + TEXTS + b"}]}", "'messages'"),
    "halves": (BeginTransaction, b'{"producer_group": "shop", "messages": ' + OBJECTS + b"}", "'messages'"),
    "handles": (AckDeliveries, b'{"receipt_handles": ' + TEXTS + b"}", "'receipt_handles'"),
    "a filter": (Receive, b'{"topic": "orders", "filter": ' + ONES + b"}", "'filter'"),
    "an array": (Message, ONES, "got `array`"),
    "a text": (Message, b'"' + b"x" * SIZE, "no JSON"),
}


@pytest.mark.parametrize("body", HOSTILE)
def test_a_hostile_body_is_refused_in_short_steps(body: str) -> None:
    shape, text, named = HOSTILE[body]

    refusal, longest = result_of(large_bodies.reading(shape, text))

    assert isinstance(refusal, BadRequest | MessageIllegal)
    assert named in str(refusal)
    assert longest < MOST_SECONDS


@pytest.mark.parametrize(
    "operations", [ONES, TEXTS, OBJECTS, b"[" + b'{"op":"ack","receipt_handles":["a"]},' * 400_000]
)
def test_a_hostile_bulk_is_refused_in_short_steps(operations: bytes) -> None:
    refusal, longest = result_of(large_bodies.reading_each(Bulk, b'{"operations": ' + operations + b"}", Given))

    assert "'operations'" in str(refusal)
    assert longest < MOST_SECONDS


@pytest.mark.parametrize(
    "text",
    [
        b"\\u0001" * (4 * MEBIBYTE),
        b"\\u0022" * (4 * MEBIBYTE),
        b'{\\"a\\":[1,2,3]},' * (MEBIBYTE // 4),
        b"x" * (4 * MEBIBYTE),
    ],
    ids=["escapes", "quotes", "JSON", "plain"],
)
def test_the_largest_message_is_read_in_short_steps(text: bytes) -> None:
    body = b'{"topic": "orders", "body": "%s"}' % text

    found, longest = result_of(large_bodies.reading(Message, body))

    assert found.body == msgspec.json.decode(b'"%s"' % text)
    assert longest < MOST_SECONDS


def test_a_small_body_with_many_values_is_large() -> None:
    few, many = b'{"keys": [%s""]}' % (b'"key",' * 1000), b'{"keys": [%s""]}' % (b'"a",' * outline.MANY_VALUES)

    assert [large_bodies.is_large(body) for body in (few, many)] == [False, True]
