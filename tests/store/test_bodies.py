"""Bodies and properties: whatever goes in comes out, byte for byte, in the form that it was sent in."""

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.messages.properties import BLANK, CONTROL, RESERVED_PROPERTIES
from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

any_character = st.characters(exclude_categories=["Cs"])  # UTF-8 has no surrogates
visible = any_character.filter(lambda character: not CONTROL.match(character))
bodies = st.one_of(
    st.fixed_dictionaries({"body": st.text(any_character, min_size=1, max_size=200)}),
    st.fixed_dictionaries(
        {"body_base64": st.binary(min_size=1, max_size=300).map(lambda body: base64.b64encode(body).decode())}
    ),
)
names = st.text(visible, min_size=1, max_size=20).filter(lambda name: name not in RESERVED_PROPERTIES)
fields = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.text(visible.filter(lambda one: one != "|"), min_size=1, max_size=20).filter(str.strip),
        "keys": st.lists(st.text(visible.filter(lambda one: not BLANK.match(one)), min_size=1), min_size=1, max_size=4),
        "properties": st.dictionaries(names, st.text(visible, max_size=50), min_size=1, max_size=5),
        "sharding_key": st.text(visible, min_size=1, max_size=64).filter(str.strip),
    },
)
TOPIC = characters.name("orders")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies, more=fields)
def test_a_message_is_given_out_as_it_was_sent(broker: RunningBroker, body: Document, more: Document) -> None:
    message = {"topic": TOPIC, **body, **more}

    assert sent_and_read(broker.wire(), message) == message


@pytest.mark.parametrize(
    "body",
    [
        {"body": "\x00"},
        {"body": "\x00\x01\x7f\x80\u2028\ufeff\U0010ffff"},
        {"body": "👩‍👩‍👧 Grüße, 日本語, NaN, \\u0000"},
        {"body_base64": base64.b64encode(bytes(range(256))).decode()},
        {"body_base64": base64.b64encode(b"plain text").decode()},
        {"body_base64": base64.b64encode(bytes(range(256)) * 4096 * 4).decode()},
    ],
    ids=["NUL", "edges", "emoji", "every byte", "text as base64", "4 MiB"],
)
def test_no_byte_of_a_body_is_changed(wire: Wire, orders: str, body: Document) -> None:
    message = {"topic": orders, **body}

    assert sent_and_read(wire, message) == message


def test_a_message_keeps_its_birth_and_its_trace(wire: Wire, orders: str) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    message = {"topic": orders, "body": "order 1", "born_at": "2020-02-29T23:59:59.123456+02:00"}

    place = wire.post("/v1/messages", message, {"traceparent": trace}).document

    found = read(wire, place)
    assert (found["born_at"], found["traceparent"]) == ("2020-02-29T21:59:59.123456Z", trace)
    assert found["stored_at"] == place["stored_at"]


def test_a_trace_that_is_too_long_to_be_one_is_left_out(wire: Wire, orders: str) -> None:
    longest = "00-" + "a" * 125
    kept = wire.post("/v1/messages", {"topic": orders, "body": "order 1"}, {"traceparent": longest})
    cut = wire.post("/v1/messages", {"topic": orders, "body": "order 2"}, {"traceparent": longest + "a"})

    assert read(wire, kept.document)["traceparent"] == longest
    assert "traceparent" not in read(wire, cut.document)


def sent_and_read(wire: Wire, message: Document) -> Document:
    """The message as a reader gets it, without what the broker added."""
    answer = wire.post("/v1/messages", message)
    assert answer.status == 201, answer.document
    found = read(wire, answer.document)
    added = ("message_id", "born_at", "stored_at", "commit_log_offset", "reconsume_times")
    return {name: value for name, value in found.items() if name not in added}


def read(wire: Wire, place: Document) -> Document:
    """The message at the place that a send was answered with."""
    topic, queue_id, offset = place["topic"], place["queue_id"], place["queue_offset"]
    page: Any = wire.get(f"/v1/topics/{topic}/queues/{queue_id}/messages?offset={offset}&max=1").document
    found: Document = page["messages"][0]["message"]
    return found
