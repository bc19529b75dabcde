"""The fields of the forms that actions are asked for by: how each is called, read from a text, and written as one."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.conf import settings

from access import keys
from delivery import registry as consumer_groups
from store import registry as topics
from store.errors import MessageIllegal
from store.messages import strict_json
from store.messages.fields import Time
from transactions import registry as producer_groups
from webhooks import registration
from webhooks.addresses import MAX_URL_CHARACTERS

# Read from a text that is not empty. Raises MessageIllegal, whose sentence begins with the field's label.
Read = Callable[[str, str], Any]
MAX_TEXT = 200
MAX_LONG_TEXT = 4000
YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form. An empty text is missing where it is `needed`, and stands for null where it is `nullable`; in
    other fields it counts as not given.
    """

    name: str
    label: str
    read: Read
    needed: bool = False
    nullable: bool = False
    choices: tuple[str, ...] = ()
    hint: str = ""
    wide: bool = False

    @property
    def required(self) -> bool:
        """Whether the form is not sent without it."""
        return self.needed and not self.choices


def text(most: int = MAX_TEXT) -> Read:
    """A text; what it goes to validates the rest."""

    def read(label: str, given: str) -> str:
        if len(given) > most:
            raise MessageIllegal(f"{label} has {len(given)} characters: {most} at most.")
        return given

    return read


def whole(least: int, most: int) -> Read:
    """A whole number between two, both included."""

    def read(label: str, given: str) -> int:
        if not (given.isascii() and given.isdigit() and len(given) <= 18 and least <= int(given) <= most):
            raise MessageIllegal(f"{label} {given[:40]!r} is no whole number from {least} to {most}.")
        return int(given)

    return read


def seconds(label: str, given: str) -> float:
    """A time-out in seconds."""
    try:
        found = float(given)
    except ValueError:
        found = 0.0
    least, most = registration.MIN_TIMEOUT_SECONDS, registration.MAX_TIMEOUT_SECONDS
    if not least <= found <= most:
        raise MessageIllegal(f"{label} {given[:40]!r} is no number from {least} to {most}, in seconds.")
    return found


def one_of(*choices: str) -> Read:
    """One of a few words."""

    def read(label: str, given: str) -> str:
        if given not in choices:
            raise MessageIllegal(f"{label} {given[:40]!r} is none of {', '.join(choices)}.")
        return given

    return read


def switch(label: str, given: str) -> bool:
    """Yes or no."""
    return bool(one_of(YES, NO)(label, given) == YES)


def words(label: str, given: str) -> list[str]:
    """Words apart by blanks or commas."""
    return str(text(MAX_LONG_TEXT)(label, given)).replace(",", " ").split()


def key_names(label: str, given: str) -> list[str]:
    """Names of API keys, or patterns of them, apart by commas: a name may hold blanks."""
    names = [name.strip() for name in text(MAX_LONG_TEXT)(label, given).split(",") if name.strip()]
    producer_groups.validate_keys(names)
    return names


def json_or_text(label: str, given: str) -> object:
    """A filter: an object in JSON, or else a tag expression."""
    return as_json(label, given) if given.startswith("{") else text(MAX_LONG_TEXT)(label, given)


def as_json(label: str, given: str) -> object:
    """An object in JSON; what it goes to validates its contents."""
    try:
        return strict_json.decode(text(MAX_LONG_TEXT)(label, given).encode(), object)
    except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise MessageIllegal(f"{label} is no JSON: {problem}.") from problem


def moment(label: str, given: str) -> str:
    """A time with its zone, as ISO 8601."""
    try:
        return msgspec.convert(given, Time).astimezone(UTC).isoformat()
    except (msgspec.ValidationError, OverflowError) as problem:
        raise MessageIllegal(
            f"{label} {given[:40]!r} is no time with its zone, such as 2027-01-31T12:00:00Z."
        ) from problem


def written(value: object) -> str:
    """A value as the text that reads as it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return YES if value else NO
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def yes_or_no(name: str, label: str, hint: str = "") -> Field:
    """A field that is yes or no."""
    return Field(name, label, switch, choices=(NO, YES), hint=hint)


TOPIC = (
    Field("queues", "Queues", whole(1, topics.MAX_QUEUES), hint="only grows"),
    Field(
        "reserved_hours",
        "Hours kept",
        whole(1, topics.MAX_RESERVED_HOURS),
        nullable=True,
        hint=f"empty: {settings.RESERVED_HOURS}",
    ),
    Field(
        "permission", "Permission", one_of(*topics.PERMISSIONS), choices=topics.PERMISSIONS, hint="r: read, w: write"
    ),
)
PRODUCER_GROUP = (
    yes_or_no("reject_transaction_message", "Half messages refused"),
    Field(
        "max_undecided",
        "Undecided at most",
        whole(1, producer_groups.MAX_UNDECIDED),
        nullable=True,
        hint=f"empty: {settings.MAX_UNDECIDED_PER_GROUP}",
    ),
    yes_or_no("checks_paused", "Checks paused"),
    Field(
        "api_keys",
        "API keys",
        key_names,
        nullable=True,
        wide=True,
        hint="names or patterns, apart by commas; empty: any",
    ),
)
CONSUMER_GROUP = (
    Field("start_at", "Starts at", one_of(*consumer_groups.STARTS), choices=consumer_groups.STARTS),
    yes_or_no("ordered", "In order", hint="one batch of a queue at a time"),
    Field(
        "max_reconsume_times",
        "Retries at most",
        whole(0, consumer_groups.MAX_RECONSUME_TIMES),
        nullable=True,
        hint=f"empty: {settings.MAX_RECONSUME_TIMES}",
    ),
    Field("retry_policy", "Retry policy", as_json, wide=True, hint="its kind is table, exponential or none"),
    yes_or_no("paused", "Paused"),
)
URL = Field("url", "URL", text(MAX_URL_CHARACTERS), needed=True, wide=True, hint="http or https, to a public host")
CALLS = (
    Field("timeout_seconds", "Seconds for a call", seconds),
    Field("concurrency", "Calls at once", whole(1, registration.MAX_CONCURRENCY)),
)
ENDPOINT_PACE = (Field("max_batch", "Transactions in a check", whole(1, registration.MAX_BATCH)), *CALLS)
PUSH_PACE = (Field("max_batch", "Messages in a call", whole(1, settings.MAX_RECEIVE_MESSAGES)), *CALLS)
PUSH = (
    Field("group_name", "Consumer group", text(), needed=True),
    Field("topic_name", "Topic", text(), needed=True),
    URL,
    Field(
        "filter", "Filter", json_or_text, nullable=True, wide=True, hint='A || B, or {"sql": "…"}; empty: every message'
    ),
)
SCOPES = Field(
    "scopes",
    "Scopes",
    words,
    needed=True,
    wide=True,
    hint="apart by blanks: produce:orders read:orders consume:coupons",
)
EXPIRES = Field("expires_at", "Expires at", moment, nullable=True, hint="2027-01-31T12:00:00Z; empty: never")

LIMITS = tuple(
    Field(name, name.replace("_", " ").capitalize(), whole(1, most), nullable=True, hint="empty: no limit")
    for name, most in keys.MAX_LIMITS.items()
)

# Of actions: their parameters.
PARAMETERS: Mapping[str, tuple[Field, ...]] = {
    "dead_letter.redrive": (
        Field("group", "Consumer group", text(), needed=True),
        Field("to_topic", "To another topic", text(), hint="empty: again to the group"),
    ),
    "offsets.reset": (
        Field("topic", "Topic", text(), needed=True),
        Field("to", "To", text(), needed=True, hint="earliest, latest, an offset or a time"),
        Field("queue_id", "Queue", whole(0, topics.MAX_QUEUES - 1), hint="empty: all"),
    ),
    "topic.make": TOPIC,
    "topic.change": TOPIC,
    "producer_group.make": PRODUCER_GROUP,
    "producer_group.change": PRODUCER_GROUP,
    "endpoint.change": ENDPOINT_PACE,
    "endpoint.move": (URL,),
    "consumer_group.make": CONSUMER_GROUP,
    "consumer_group.change": CONSUMER_GROUP,
    "subscription.change": PUSH_PACE,
    "subscription.move": PUSH,
    "key.change": (SCOPES, EXPIRES, *LIMITS),
}
# Of actions whose outcome is shown once: see actions/shown_once.py.
ONCE: Mapping[str, tuple[Field, ...]] = {
    "key.make": (SCOPES, EXPIRES, *LIMITS),
    "endpoint.register": (URL, *ENDPOINT_PACE),
    "subscription.make": (*PUSH, *PUSH_PACE),
}


@dataclass(frozen=True, slots=True)
class Filled:
    """The fields of a form as they were filled in: their values, and those that are needed and empty."""

    values: dict[str, Any]
    missing: list[str]


def read(fields: tuple[Field, ...], given: Mapping[str, str]) -> Filled:
    """What a form holds.

    Raises MessageIllegal for a text that a field cannot hold.
    """
    filled = Filled({}, [])
    for field in fields:
        found = given.get(field.name, "").strip()
        if found:
            filled.values[field.name] = field.read(field.label, found)
        elif field.needed:
            filled.missing.append(field.name)
        elif field.nullable and field.name in given:
            filled.values[field.name] = None
    return filled
