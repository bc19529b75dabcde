"""Bodies are bytes on both sides, whatever they hold, and ids are UUIDs of version 7."""

import json
import time
from datetime import UTC, datetime
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqbroker_client import Message
from mqbroker_client.ids import uuid7
from mqbroker_client.messages import body_of


@given(st.binary())
def test_every_byte_of_a_body_survives(body: bytes) -> None:
    document = json.loads(json.dumps(Message("orders", body).document()))

    assert body_of(document) == body
    assert ("body" in document) != ("body_base64" in document)


@given(st.text(st.characters(codec="utf-8")))
def test_text_travels_as_text(text: str) -> None:
    assert Message("orders", text.encode()).document()["body"] == text


def test_only_what_was_set_is_sent() -> None:
    message = Message("orders", b"order 1", delay_seconds=0, deliver_at=datetime(2026, 1, 2, tzinfo=UTC))

    assert message.document() == {
        "topic": "orders",
        "body": "order 1",
        "message_id": str(message.message_id),
        "delay_seconds": 0,
        "deliver_at": "2026-01-02T00:00:00+00:00",
    }


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
