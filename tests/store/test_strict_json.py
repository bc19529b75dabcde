"""JSON is decoded as it came, and a name that stands twice in one object is found, however it is written."""

import contextlib
import json
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from delivery.receive.receives import Receive
from mqbroker.api.bulk_operations import Bulk, Given
from scheduling.sending.batches import SendBatch
from store.messages import strict_json
from store.messages.strict_json import DuplicateName
from tests.broker.polling import at_this_load
from transactions.operations.end import EndTransaction
from transactions.operations.validation import BeginTransaction

NAMES = st.sampled_from(("topic", "body", "properties", "producer_group", "keys", "messages", "a", "a\\", 'a":', '"'))
TEXTS = st.text(max_size=4) | st.sampled_from(('":', '\\":', '"', "\\", '{"a": 1}', '" :'))
SPACES = st.sampled_from(("", " ", "\n", "\t ", " \r\n"))


@st.composite
def texts_of_json(draw: st.DrawFn, depth: int = 2) -> str:
    """A JSON text in any spelling, with names that stand in an object once or several times."""
    kind = draw(st.sampled_from(("text", "number", "null", *(("object", "list") if depth else ()))))
    if kind == "text":
        return spelt(draw, draw(TEXTS))
    if kind in ("number", "null"):
        return draw(st.sampled_from(("1", "1.5", "true", "null")))
    inner = texts_of_json(depth=depth - 1)
    if kind == "list":
        return f"[{','.join(draw(st.lists(inner, max_size=3)))}]"
    return written(draw, draw(st.lists(st.tuples(NAMES, inner), max_size=5)))


def written(draw: st.DrawFn, pairs: list[tuple[str, str]]) -> str:
    fields = [f"{draw(SPACES)}{spelt(draw, name)}{draw(SPACES)}:{draw(SPACES)}{value}" for name, value in pairs]
    return "{" + ",".join(fields) + "}"


def spelt(draw: st.DrawFn, text: str) -> str:
    """A string as one of the ways to write it."""
    if draw(st.booleans()):
        return json.dumps(text, ensure_ascii=False)
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2)) + '"'


@st.composite
def requests(draw: st.DrawFn) -> str:
    """A request to begin a transaction, most of them well-formed, with one field or more given several times."""
    fields = [
        ("topic", spelt(draw, draw(TEXTS))),
        ("body", spelt(draw, draw(TEXTS))),
        ("tags", draw(st.sampled_from(("null", '"a"', '""')))),
        ("keys", draw(st.sampled_from(("null", "[]", '["a", "\\""]')))),
        (
            "properties",
            written(draw, [(name, spelt(draw, draw(TEXTS))) for name in draw(st.lists(NAMES, max_size=3))]),
        ),
        ("queue_id", "0"),
        ("producer_group", spelt(draw, draw(TEXTS))),
        ("messages", draw(st.sampled_from(("null", "[]", '[{"body": "x", "topic": "a\\""}, {}]')))),
        ("deliver_at", '"2026-01-01T00:00:00Z"'),
        ("message_id", '"019c0000-0000-7000-8000-000000000000"'),
    ]
    chosen = draw(st.lists(st.sampled_from(fields), max_size=6))
    return written(draw, [("producer_group", '"g"'), *chosen])


def has_a_name_twice(text: str) -> bool:
    """By Python's own parser."""
    found = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        found.append(len(dict(pairs)) < len(pairs))

    json.loads(text, object_pairs_hook=look)
    return any(found)


# Blanks behind a text make it one of those that are not written again.
LARGE = " " * strict_json.WRITTEN_BYTES


@given(texts_of_json() | requests(), st.sampled_from(("", LARGE)))
@example('{"a\\\\": 1, "b": 2}', "")
@example('{"a\\\\": 1, "b": 2}', LARGE)
@example('{"a\\\\":1,"a\\\\":2}', "")
@example('{"a\\\\":1,"a\\\\":2}', LARGE)
@example('{"a" :"x","a": "\\u0022"}', "")
@example('{"a" :"x","a": "\\u0022"}', LARGE)
@example('{"topic": "orders", "producer_group": "g", "body": "\\u0022", "body": "y"}', "")
@example('{"topic": "orders", "producer_group": "g", "body": "\\u0022", "body": "y"}', LARGE)
@example('{"producer_group": "g", "from_transaction_check": false, "state": "COMMIT"}', "")
@example('{"producer_group": "g", "from_transaction_check": false, "state": "COMMIT"}', LARGE)
def test_a_name_that_stands_twice_is_found(text: str, blanks: str) -> None:
    text += blanks
    shapes: Sequence[Any] = (object, BeginTransaction, Bulk, Given, EndTransaction, Receive)
    for shape in shapes:
        # What is no such request is refused for that.
        with contextlib.suppress(msgspec.DecodeError):
            if has_a_name_twice(text):
                with pytest.raises(DuplicateName):
                    strict_json.decode(text.encode(), shape)
            else:
                assert strict_json.decode(text.encode(), shape) == msgspec.json.decode(text, type=shape)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('{"topic":"orders","body":"order 1","producer_group":"shop","properties":{"a":"1"}}', BeginTransaction),
        ('{"topic":"orders","body":"{\\"order\\": 1}","producer_group":"shop","queue_id":0}', BeginTransaction),
        (
            '{"op":"end","transaction_id":"019c0000-0000-7000-8000-000000000000","producer_group":"g","state":"COMMIT"}',
            Given,
        ),
        ('{"operations":[{"op":"send","topic":"orders","body":"a"},{"op":"send","topic":"orders","body":"b"}]}', Bulk),
        ('{"topic":"orders","messages":[{"body":"a","tags":"b"},{"body":"c","keys":["d"]}]}', SendBatch),
        ('{"group":"g","op":"ack","receipt_handles":["a","b"]}', Given),
        ('{"topic":"orders","filter":{"sql":"price > 10"},"max_messages":10,"wait_seconds":5}', Receive),
    ],
)  # fmt: skip -- a request to a line
def test_an_ordinary_request_needs_no_second_parse(text: str, shape: Any) -> None:
    for written in (text, text + LARGE):
        assert strict_json.is_plain(written.encode(), msgspec.json.decode(written, type=shape))


def test_a_name_that_stands_twice_among_very_many_is_found_as_fast_as_they_are_read() -> None:
    """Where each was compared with all before it, 20,000 names took 10 s, and a body of 4 MiB hours."""
    names = [*map(str, range(200_000)), "199999"]
    text = "{" + ",".join(f'"{name}":""' for name in names) + "}"

    began = time.process_time()
    with pytest.raises(DuplicateName, match="an object has the name '199999' twice"):
        strict_json.decode(text.encode(), dict[str, str])

    assert time.process_time() - began < at_this_load(5)
