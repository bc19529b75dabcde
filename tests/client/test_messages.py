"""Bodies are bytes on both sides, whatever they hold, and ids are UUIDs of version 7."""

import copy
import json
import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqbroker_client import Message
from mqbroker_client.core.compression import body_of
from mqbroker_client.core.ids import uuid7


@given(st.binary())
def test_every_byte_of_a_body_survives(body: bytes) -> None:
    document = json.loads(json.dumps(Message("orders", body).document()))

    assert body_of(document) == body
    assert ("body" in document) != ("body_base64" in document)


@given(st.text(st.characters(codec="utf-8")))
def test_text_travels_as_text(text: str) -> None:
    assert Message("orders", text.encode()).document()["body"] == text


def test_what_is_neither_bytes_nor_a_text_is_sent_as_json_only() -> None:
    with pytest.raises(TypeError, match="not dict: json="):
        Message("orders", {"order": 1})  # type: ignore[arg-type]  # what the message is about


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"price": float("-inf")}])
def test_what_json_does_not_have_is_no_body(value: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Message.of("orders", json=value)


def test_only_what_was_set_is_sent() -> None:
    message = Message("orders", b"order 1", delay_seconds=0, deliver_at=datetime(2026, 1, 2, tzinfo=UTC))

    assert message.document() == {
        "topic": "orders",
        "body": "order 1",
        "message_id": str(message.message_id),
        "delay_seconds": 0,
        "deliver_at": "2026-01-02T00:00:00+00:00",
    }


@pytest.mark.parametrize("keys", ["order-1", ["order-1"], ("order-1",)])
def test_a_text_is_one_key_and_not_its_characters(keys: str | list[str]) -> None:
    assert Message("orders", b"order 1", keys=keys).document()["keys"] == ["order-1"]


def test_in_another_transaction_a_message_has_another_id() -> None:
    message, first, second = Message("orders", b"order 1", tags="paid"), uuid7(), uuid7()

    assert message.within(first) is message
    again = message.within(second)

    assert again.message_id != message.message_id
    assert replace(again, message_id=message.message_id) == message
    assert message.within(second) == again
    assert message.within(first) is message


def test_an_id_that_the_program_chose_stays() -> None:
    message = Message("orders", b"order 1", message_id=uuid7())

    assert message.within(uuid7()) is message.within(uuid7()) is message


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda message: pickle.loads(pickle.dumps(message))])
def test_a_copy_of_a_message_has_its_id(duplicate: Callable[[Message], Message]) -> None:
    message = Message("orders", b"order 1", keys=["order-1"])

    assert duplicate(message) == message
    assert repr(duplicate(message)) == repr(message)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Message("orders", b"order 1", deliver_at=datetime(2026, 1, 2)).document()  # noqa: DTZ001  the very mistake


def test_ids_are_distinct_uuids_of_version_7_that_bear_the_time() -> None:
    before = time.time_ns() // 1_000_000
    ids = [uuid7() for _ in range(1000)]
    after = time.time_ns() // 1_000_000

    assert len(set(ids)) == 1000
    assert {(made.version, made.variant) for made in ids} == {(7, RFC_4122)}
    assert all(before <= milliseconds(made) <= after for made in ids)


def milliseconds(made: UUID) -> int:
    return made.int >> 80
