"""A property is never a command: what a target, its clients or we give a meaning to arrives behind a prefix."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mqbroker_client import Message
from mqbroker_client.contrib.relay.reserved import FIELDS, PREFIX, TABLES
from mqbroker_client.core.rules import RESERVED_PROPERTIES
from nats.js.api import Header

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.docs.pages import CODE, page
from tests.relay.conftest import Received, Source, Target, relay

PAGE = page("docs/relay.md").section("What arrives")
#: What has brought others into trouble, and what the clients of today know, whatever the page says.
KNOWN = {
    "amqp": [
        "BCC",
        "x-death",
        "x-delay",
        "x-stream-filter-value",
        "cloudEvents_type",
        "content_type",
        "x_match",
        "__TypeId__",
    ],
    "nats": [*(str(header.value) for header in Header), "KV-Operation", "Nmqtt-Pub", "Nats-Msg-Id", "Nats-Trace-Dest"],
    "kafka": ["__TypeId__", "kafka_replyTopic", "spring_json_header_types", "__connect.errors.topic", "ce_type"],
}
EVENT = ("specversion", "id", "source", "type", "subject", "time", "datacontenttype")
#: No header of NATS has such a name; what becomes of that is in test_faults.py.
LAX: list[Callable[[str], str]] = [
    lambda name: f" {name}",
    lambda name: f"{name[0]}\u200b{name[1:]}",
    lambda name: fullwidth(name),
]


def fullwidth(name: str) -> str:
    """The same letters as of an East Asian font."""
    return "".join(chr(ord(sign) + 0xFEE0) if sign.isascii() and sign.isalpha() else sign for sign in name)


def reserved(kind: str) -> list[str]:
    """The names that the page says are reserved at a target, and the known ones."""
    rows = re.findall(r"^\| (?:all|\w+, `(\w+)`) \| (.*) \|$", PAGE.text, re.MULTILINE)
    named = [name for own, names in rows if own in ("", kind) for name in CODE.findall(names)]
    return [name.replace("*", "Any") for name in named] + KNOWN[kind] + [f"ce-{name}" for name in EVENT]


def variants(kind: str) -> list[str]:
    """The reserved names, also as a lax reader takes them."""
    made: list[Callable[[str], str]] = [
        str,
        str.upper,
        str.lower,
        str.title,
        lambda name: name.replace("-", "_"),
        lambda name: name.replace("_", "-"),
    ]
    more = [] if kind == "nats" else LAX
    found = {change(name) for name in reserved(kind) for change in (*made, *more)}
    return sorted(found - RESERVED_PROPERTIES - ({name for name in found if ":" in name} if kind == "nats" else set()))


def test_a_property_of_a_reserved_name_arrives_behind_a_prefix_and_commands_nothing(
    broker: RunningBroker, target: Target, tmp_path: Path
) -> None:
    names = variants(target.kind)
    parts = [names[at : at + 100] for at in range(0, len(names), 100)]
    source = Source(broker)
    source.producer.send_message(Message(source.topic, b"earlier", tags="tag", keys="key", sharding_key="order"))
    program = relay(broker, tmp_path, f"{source.lines}concurrency = 1\n\n[target]\n{target.lines}")
    program.start()
    try:
        eventually(target.received, within_seconds=60)
        for part in parts:
            # A value by which Nats-Rollup would delete what is there, and Nats-TTL keep it.
            properties = {**dict.fromkeys(part, "all"), "colour": "red"}
            source.producer.send_message(Message(source.topic, b"later", tags="tag", properties=properties))
        found = eventually(lambda: arrived(target, 1 + len(parts)), within_seconds=60)
    finally:
        program.stop()

    earlier, *later = sorted(found, key=lambda one: one.body)
    assert (earlier.body, [one.body for one in later]) == (b"earlier", [b"later"] * len(parts))
    own = {"colour", "Nats-Msg-Id"} | set(FIELDS)
    assert {name for one in later for name in one.headers} - own == {f"{PREFIX}{name}" for name in names}
    assert {one.headers["topic"] for one in later} == {source.topic}
    assert {one.headers["tags"] for one in later} == {"tag"}
    if target.kind == "nats":
        assert all(one.headers["Nats-Msg-Id"] == one.headers["message_id"] for one in found)


def arrived(target: Target, count: int) -> list[Received] | None:
    """All of them, once so many are there."""
    found = target.received()
    return found if len(found) >= count else None


@pytest.mark.parametrize("kind", TABLES)
def test_no_two_properties_become_one_header_and_other_names_stay(kind: str) -> None:
    names = [
        *variants(kind),
        *(f"{PREFIX}{name}" for name in variants(kind)),
        "colour",
        "naïve",
        "a b",
        "tag",
        "order-id",
    ]

    made = [TABLES[kind].header(name) for name in names]

    assert len(set(made)) == len(set(names))
    assert made[-5:] == names[-5:]
