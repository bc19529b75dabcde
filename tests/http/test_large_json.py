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
from scheduling.sending.batches import SendBatch
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


def test_blanks_before_a_body_are_no_empty_body() -> None:
    body = b" " * (large_bodies.FEW_BYTES + 1) + b'{"topic": "orders", "body": "x"}'

    assert result_of(large_bodies.reading(Message, body))[0] == json_bodies.decode(Message, body.lstrip())


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
START = b'{"topic": "orders", "body": "x", '
# Name: the shape of the call, what a body begins with, what comes again and again, its end, and what the refusal names.
HOSTILE: dict[str, tuple[Any, bytes, bytes, bytes, str]] = {
    "an unknown field": (Message, START + b'"a": [', b"1,", b"1]}", "There is no field a here"),
    "an unknown field of objects": (Message, START + b'"a": [', b"{},", b"{}]}", "There is no field a here"),
    "an unknown text": (Message, START + b'"a": "', b"x", b'"}', "There is no field a here"),
    "keys": (Message, START + b'"keys": [', b'"",', b'""]}', "'keys'"),
    "properties": (Message, START + b'"properties": {', b'"a":"",', b'"b":""}}', "'properties'"),
    "a topic twice": (Message, START + b'"topic": "x", "keys": [', b'"",', b'""]}', "'topic' twice"),
    "levels": (Message, b"", b'{"a":', b"", "levels"),
    "blanks": (Message, START, b" ", b'"tags": "a"}', "bytes beside"),
    "digits": (Message, START + b'"queue_id": ', b"9", b"}", "bytes beside"),
    "tags": (Message, START + b'"tags": "', b"x", b'"}', "'tags'"),
    "a name": (Message, b'{"', b"x", b'": 1}', "bytes"),
    "escapes": (Message, START + b'"tags": "', b"\\u0041", b'"}', "'tags'"),
    "messages": (SendBatch, b'{"topic": "orders", "messages": [', b"{},", b"{}]}", "'messages'"),
    "messages that are none": (SendBatch, b'{"topic": "orders", "messages": [', b"1,", b"1]}", "'messages'"),
    "beside messages": (SendBatch, b'{"messages": [{}], "a": [', b"1,", b"1]}", "There is no field a here"),
    "in a message": (SendBatch, b'{"messages": [{"keys": [', b'"",', b'""]}]}', "'messages'"),
    "halves": (BeginTransaction, b'{"producer_group": "shop", "messages": [', b"{},", b"{}]}", "'messages'"),
    "handles": (AckDeliveries, b'{"receipt_handles": [', b'"",', b'""]}', "'receipt_handles'"),
    "a filter": (Receive, b'{"topic": "orders", "filter": [', b"1,", b"1]}", "'filter'"),
    "an array": (Message, b"[", b"1,", b"1]", "The body of the request is a list: give a JSON object."),
    "a text": (Message, b'"', b"x", b"", "not JSON"),
}


@pytest.mark.parametrize("body", HOSTILE)
def test_a_hostile_body_is_refused_in_short_steps(body: str) -> None:
    shape, start, again, end, named = HOSTILE[body]

    refusal, longest = result_of(large_bodies.reading(shape, start + again * (SIZE // len(again)) + end))

    assert isinstance(refusal, BadRequest | MessageIllegal)
    assert named in str(refusal)
    assert longest < MOST_SECONDS


@pytest.mark.parametrize("again", [b"1,", b'"",', b"{},", b'{"op":"ack","group":"a","receipt_handles":["a"]},'])
def test_a_hostile_bulk_is_refused_in_short_steps(again: bytes) -> None:
    body = b'{"operations": [' + again * (SIZE // len(again)) + again[:-1] + b"]}"

    refusal, longest = result_of(large_bodies.reading_each(Bulk, body, Given))

    assert "'operations'" in str(refusal)
    assert longest < MOST_SECONDS


@pytest.mark.parametrize(
    ("unit", "size"),
    [(b"\\u0001", 1), (b"\\u0022", 1), (b'{\\"a\\":[1]},', 10), (b"x", 1)],
    ids=["escapes", "quotes", "JSON", "plain"],
)
def test_the_largest_message_is_read_in_short_steps(unit: bytes, size: int) -> None:
    text = unit * (4 * MEBIBYTE // size)
    body = b'{"topic": "orders", "body": "%s"}' % text

    found, longest = result_of(large_bodies.reading(Message, body))

    assert found.body == msgspec.json.decode(b'"%s"' % text)
    assert longest < MOST_SECONDS


def test_a_small_body_with_many_values_is_large() -> None:
    few, many = b'{"keys": [%s""]}' % (b'"key",' * 1000), b'{"keys": [%s""]}' % (b'"a",' * outline.MANY_VALUES)

    assert [large_bodies.is_large(body) for body in (few, many)] == [False, True]
