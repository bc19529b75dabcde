"""Holds every place that carries messages to one list of their fields, so that none loses a field on the way."""

from pathlib import Path

import pytest

from store.messages import MessageRow
from store.messages.fields import COLUMNS
from store.models import CommitLog
from tests.house import message_fields
from tests.house.sources import ROOT, Source

APPENDS = ("append_again", "append_messages", "append_numbered", "append_numbered_of_one", "send_messages")
# The queue of a message is an entry's, where it is read.
ENTRYS = {"queue_id"}


def test_every_place_that_carries_messages_names_every_field() -> None:
    assert message_fields.breaches(message_fields.places(), message_fields.fields() - ENTRYS) == []


def test_the_list_has_the_fields_that_a_producer_sends_and_the_log_keeps() -> None:
    assert {"message_id", "tags", "keys", "properties", "sharding_key", "body", "born_at"} <= message_fields.fields()
    assert "log_offset" not in message_fields.fields()
    assert "deliver_at" not in message_fields.fields()


def test_a_new_field_costs_ten_files_at_most() -> None:
    places = message_fields.places()
    assert {place.path.suffix for place in places} == {".py", ".sql"}
    assert {place.room for place in places} == {"store", "analytics", "client", "mqbroker"}
    # The tenth is the other protocol, by which RocketMQ's clients come.
    assert len(places) <= 10


def test_the_row_of_a_message_is_a_row_of_the_commit_log() -> None:
    assert list(MessageRow.__struct_fields__) == [field.attname for field in CommitLog._meta.concrete_fields]


def test_the_checker_catches_a_select_that_leaves_a_field_out() -> None:
    select = Source(Path("store/sql/read.sql"), "-- Read.\nSELECT body, body_form, tags FROM commit_log\n")

    assert message_fields.breaches([select], {"body", "tags", "keys"}) == ["store/sql/read.sql leaves out keys"]


def test_an_append_is_given_every_column_of_a_message() -> None:
    assert sorted(COLUMNS) == sorted(set(message_fields.columns()) - set(message_fields.GIVEN_BY_BROKER))


def test_each_append_writes_every_column_of_a_message_from_its_own_value() -> None:
    found = message_fields.appends()

    assert {str(source) for source in found} == {f"store/sql/{name}.sql" for name in APPENDS}
    assert [breach for source in found for breach in message_fields.append_breaches(source)] == []


@pytest.mark.parametrize(
    ("old", "new", "breach"),
    [
        ("tags, keys, sharding_key", "tags, sharding_key", "writes "),
        ("m.tags, string_to_array", "m.traceparent, string_to_array", "fills tags with m.traceparent"),
        ("%(tags)b::text [], %(keys)b::text []", "%(keys)b::text [], %(tags)b::text []", "takes "),
    ],
)
def test_the_checker_catches_an_append_that_loses_or_mixes_up_a_column(old: str, new: str, breach: str) -> None:
    path = Path("store/sql/append_messages.sql")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert old in text

    [found, *_] = message_fields.append_breaches(Source(path, text.replace(old, new)))

    assert found.startswith(f"{path} {breach}")
