"""The broker's rules for messages and transactions that do not depend on stored data, checked before a message is kept.

They are the rules of the broker's `store/messages/fields.py`, in its order and its words, with the numbers and names of
the generated `rules`.
`tests/client/test_limits_before_keeping.py` sends generated transactions to a broker and compares its answers with
what is raised here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mqbroker_client.core import errors, rules
from mqbroker_client.core.messages import Message

NAME = re.compile(r"[%|a-zA-Z0-9_-]+")
BLANK = re.compile(r"\s")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

# The JSON types of each field.
_KINDS: Mapping[str, tuple[type, ...]] = {
    "topic": (str,),
    "tags": (str,),
    "sharding_key": (str,),
    "born_host": (str,),
    "max_reconsume_times": (int,),
    "queue_id": (int,),
    "delay_level": (int,),
    "delay_seconds": (int, float),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that an operator can set; the values here are the broker's defaults."""

    #: The broker's MAX_MESSAGE_BYTES: the bodies of one message, batch or transaction together.
    message_bytes: int = 4 * 1024 * 1024
    #: The broker's MAX_TIMER_DELAY_SECONDS: the longest delay.
    delay_seconds: float = 40 * 86400

    def widened(self, taken: Sequence[Message]) -> "Limits":
        """The limits, raised as far as these messages need; the broker has accepted the messages."""
        size = sum(len(message.body) for message in taken)
        delay = max((message.delay_seconds or 0 for message in taken), default=0)
        if size <= self.message_bytes and delay <= self.delay_seconds:
            return self
        return Limits(max(size, self.message_bytes), max(delay, self.delay_seconds))


DEFAULTS = Limits()


def validate(group: str, messages: Sequence[Message], limits: Limits = DEFAULTS) -> None:
    """Validates the messages of one transaction of a producer group.

    Raises the error with which the broker would answer: the field, its value and what is valid. Rules that only the
    broker can check are not checked: which topics and queues exist, and what the key may do.
    """
    _validate_group(group)
    if not messages:
        raise _error(errors.BatchIllegal, "messages is empty: give at least one message.")
    if len(messages) > rules.TRANSACTION_MESSAGES:
        raise _error(
            errors.BatchIllegal, f"messages has {len(messages)} messages, the limit is {rules.TRANSACTION_MESSAGES}."
        )
    for message in messages:
        _validate_kinds(message)
    for message in messages:
        _validate_topic(message.topic)
    for message in messages:
        _validate_message(message, limits)
    _validate_together(messages, limits)
    for message in messages:
        _validate_place(message)
        _validate_longest_delay(message, limits)


def _validate_group(group: str) -> None:
    if not _is_name(group):
        raise _error(errors.MessageIllegal, f"producer_group {group[:140]!r} is not a valid group name: {_NAME_RULE}.")


def _validate_kinds(message: Message) -> None:
    wrong = [name for name, kinds in _KINDS.items() if not _is_of(kinds, getattr(message, name))]
    if not all(isinstance(key, str) for key in message.keys):
        wrong.append("keys")
    if not all(isinstance(text, str) for pair in message.properties.items() for text in pair):
        wrong.append("properties")
    if wrong:
        raise _error(
            errors.MessageIllegal, f"{wrong[0]} {getattr(message, wrong[0])!r:.140} has a type that it cannot have."
        )


def _is_of(kinds: tuple[type, ...], value: object) -> bool:
    return value is None or (isinstance(value, kinds) and not isinstance(value, bool))


def _validate_topic(topic: str) -> None:
    if not _is_name(topic):
        what = f"topic {topic[:140]!r} is not a valid topic name: " if topic else "topic is missing: give "
        raise _error(errors.TopicIllegal, f"{what}{_NAME_RULE}.")
    if topic in rules.SYSTEM_TOPICS or topic.startswith(rules.SYSTEM_PREFIXES):
        raise _error(errors.TopicForbidden, f"The topic {topic} belongs to the broker: send to a topic of your own.")


def _validate_message(message: Message, limits: Limits) -> None:
    if not message.body:
        raise _error(errors.MessageIllegal, "The body is empty: give at least one byte.")
    if len(message.body) > limits.message_bytes:
        raise _error(
            errors.MessageTooLarge, f"The body has {len(message.body)} bytes, the limit is {limits.message_bytes}."
        )
    size = _size_of_tags(message.tags) + sum(map(_size_of_key, message.keys)) + _size_of_properties(message.properties)
    if size > rules.PROPERTIES_BYTES:
        raise _error(
            errors.PropertiesTooLarge,
            f"Properties, tags and keys have {size} bytes together, the limit is {rules.PROPERTIES_BYTES}.",
        )
    _validate_text("sharding_key", message.sharding_key, rules.SHARDING_KEY_CHARACTERS)
    _validate_born_at(message.born_at)
    _validate_text("born_host", message.born_host, rules.BORN_HOST_CHARACTERS)
    times = message.max_reconsume_times
    if times is not None and not 0 <= times <= rules.RECONSUME_TIMES:
        raise _illegal(f"max_reconsume_times {times} is not between 0 and {rules.RECONSUME_TIMES}.")
    _validate_delay(message)


def _size_of_tags(tags: str | None) -> int:
    if tags is None:
        return 0
    if not tags.strip() or "|" in tags or CONTROL.search(tags):
        raise _illegal(
            f"tags {tags!r} cannot be used: give a text that is not blank, without | and control characters."
        )
    return len(tags.encode())


def _size_of_key(key: str) -> int:
    if not key or BLANK.search(key) or CONTROL.search(key):
        raise _illegal(f"keys holds {key!r}: a key is not blank and has no blanks or control characters.")
    return len(key.encode())


def _size_of_properties(given: Mapping[str, str]) -> int:
    # The immunity of a transaction may come as RocketMQ's property; the broker removes this property.
    properties = {name: value for name, value in given.items() if name != rules.IMMUNITY}
    if len(properties) > rules.PROPERTIES:
        raise _error(
            errors.PropertiesTooLarge, f"There are {len(properties)} properties, the limit is {rules.PROPERTIES}."
        )
    if reserved := rules.RESERVED_PROPERTIES.intersection(properties):
        name = min(reserved)
        way_out = f"use the field {rules.FIELD_INSTEAD[name]}" if name in rules.FIELD_INSTEAD else "use another name"
        raise _error(errors.MessageIllegal, f"The property {name} is reserved by the broker: {way_out}.")
    if "" in properties:
        raise _error(errors.MessageIllegal, "A property has an empty name: give each property a name.")
    for name, value in properties.items():
        if CONTROL.search(name + value):
            raise _illegal(f"The property {name[:80]!r} has a control character: leave it out of name and value.")
    return sum(len(name.encode()) + len(value.encode()) for name, value in properties.items())


def _validate_text(name: str, text: str | None, most: int) -> None:
    if text is not None and (not text.strip() or len(text) > most or CONTROL.search(text)):
        raise _illegal(
            f"{name} {text[:80]!r} cannot be used: give 1 to {most} characters, not blank, without control characters."
        )


def _validate_born_at(born_at: datetime | None) -> None:
    if born_at is None:
        return
    try:
        born_at.astimezone(UTC)
    except OverflowError as problem:
        raise _error(
            errors.MessageIllegal,
            f"born_at {born_at.isoformat()} cannot be used: give a time in the years 1 to 9999, in UTC.",
        ) from problem


def _validate_delay(message: Message) -> None:
    # Level 0 means no delay, as in RocketMQ.
    delays = {
        "delay_level": message.delay_level or None,
        "delay_seconds": message.delay_seconds,
        "deliver_at": message.deliver_at,
    }
    given = [name for name, value in delays.items() if value is not None]
    if len(given) > 1:
        raise _error(errors.DelayIllegal, f"{' and '.join(given)} exclude each other: give at most one of them.")
    if (message.delay_level or 0) < 0:
        raise _error(
            errors.DelayIllegal,
            f"delay_level {message.delay_level} is below 0: give a level from 1 to the highest level.",
        )
    if message.delay_seconds is not None and message.delay_seconds < 0:
        raise _error(errors.DelayIllegal, f"delay_seconds {float(message.delay_seconds)} is below 0: give 0 or more.")


def _validate_together(messages: Sequence[Message], limits: Limits) -> None:
    if (size := sum(len(message.body) for message in messages)) > limits.message_bytes:
        raise _error(
            errors.MessageTooLarge, f"The bodies have {size} bytes together, the limit is {limits.message_bytes}."
        )
    if len({message.message_id for message in messages}) < len(messages):
        raise _error(
            errors.MessageIdReused,
            "Two messages of the transaction have the same message_id: give each message another id.",
        )


def _validate_place(message: Message) -> None:
    """Only the broker knows how many queues a topic has."""
    if message.queue_id is not None and message.queue_id < 0:
        raise _error(errors.QueueIllegal, f"The topic {message.topic} has no queue {message.queue_id}: give 0 or more.")


def _validate_longest_delay(message: Message, limits: Limits) -> None:
    """Compared with this program's clock. The delivery time may also come while a message waits in the program."""
    longest = limits.delay_seconds
    if message.delay_seconds is not None and message.delay_seconds > longest:
        raise _error(
            errors.DelayIllegal, f"delay_seconds {float(message.delay_seconds)} is above the maximum of {longest:.0f}."
        )
    if message.deliver_at is not None and message.deliver_at > datetime.now(UTC) + timedelta(seconds=longest):
        raise _error(
            errors.DelayIllegal,
            f"deliver_at {message.deliver_at.isoformat()} is too far ahead: the maximum is {longest:.0f} seconds.",
        )


_NAME_RULE = f"1 to {rules.NAME_CHARACTERS} letters, digits and % | _ -"


def _is_name(text: str) -> bool:
    return len(text) <= rules.NAME_CHARACTERS and NAME.fullmatch(text) is not None


def _illegal(detail: str) -> errors.BrokerError:
    return _error(errors.MessageIllegal, detail)


def _error(kind: type[errors.BrokerError], detail: str) -> errors.BrokerError:
    """The error that `errors.from_problem` would make from the broker's answer."""
    return kind(detail, status=kind.status_of_class, code=kind.code_of_class)
