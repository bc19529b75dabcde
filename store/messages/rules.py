"""The rules for the fields of a message."""

import base64
from datetime import UTC, datetime
from operator import attrgetter

from store import errors
from store.messages import properties, unpacking
from store.messages.compression import Compression, Unreadable
from store.messages.fields import MAX_PROPERTIES_BYTES, MAX_SHARDING_KEY, Message
from store.messages.properties import CONTROL
from store.process.configuration import setting

# The largest number of retries that a message may set for itself; a consumer group may set the same number.
MAX_RECONSUME_TIMES = 1000
MAX_BORN_HOST = 255

# All fields except topic and body. Most messages have none of these fields.
_further_fields = attrgetter(*[name for name in Message.__struct_fields__ if name not in ("topic", "body")])
_NO_FURTHER = (None,) * (len(Message.__struct_fields__) - 2)


def checked(message: Message) -> bytes:
    """Validates a message by all rules of the API except the rules of its topic. Returns the bytes of the body.

    Raises MessageIllegal, MessageTooLarge, PropertiesTooLarge or DelayIllegal, with the field and what is valid. For a
    message with only a body, one look at all fields takes 0.4 us, and checking rule by rule 1 us.
    """
    if message.body and _further_fields(message) == _NO_FURTHER:
        return _of_size(message.body.encode())
    body = _body_of(message)
    _validate(message)
    return body


def is_soon_read(message: Message) -> bool:
    """Whether a body is not compressed, or small enough to be unpacked at once; otherwise call `require_readable`."""
    return message.compression is None or unpacking.is_soon_read(message.compression, checked(message))


async def require_readable(*given: Message) -> None:
    """Raises MessageIllegal if a compressed body cannot be unpacked, MessageTooLarge if the unpacked body is too large.

    Too large is more than MAX_MESSAGE_BYTES, or more than the limit for one request. So a body that no consumer can
    unpack is refused when its producer sends it. At most one piece of a body is in memory.
    """
    for message in given:
        if message.compression is not None:
            await _require_readable(message.compression, checked(message))


async def _require_readable(method: Compression, packed: bytes) -> None:
    limit, size = setting("MAX_MESSAGE_BYTES"), 0

    def take(piece: bytes) -> None:
        nonlocal size
        size += len(piece)
        if size > limit:
            raise errors.MessageTooLarge(f"The decompressed body has more than {limit} bytes, the limit.")

    try:
        await unpacking.current().each(method, packed, take)
    except Unreadable as problem:
        raise errors.MessageIllegal(
            f"body_base64 cannot be decompressed with {method} ({problem}): give one complete {method} stream."
        ) from problem
    if not size:
        raise errors.MessageIllegal("The body is empty after decompression: give at least one byte.")


def _body_of(message: Message) -> bytes:
    """The bytes of the body.

    Raises MessageIllegal unless the message has either body or body_base64, not empty and valid; MessageTooLarge above
    MAX_MESSAGE_BYTES.
    """
    if message.body_bytes is not None:
        return _of_size(_not_empty(message.body_bytes))
    if (message.body is None) == (message.body_base64 is None):
        raise errors.MessageIllegal("A message must have exactly one of body and body_base64: give one of them.")
    if message.compression is not None and message.body_base64 is None:
        raise errors.MessageIllegal(
            "compression is only allowed with body_base64: give the compressed bytes in body_base64."
        )
    body = message.body.encode() if message.body is not None else _from_base64(message.body_base64 or "")
    return _of_size(_not_empty(body))


def _not_empty(body: bytes) -> bytes:
    if not body:
        raise errors.MessageIllegal("The body is empty: give at least one byte.")
    return body


def _of_size(body: bytes) -> bytes:
    if len(body) > (limit := setting("MAX_MESSAGE_BYTES")):
        raise errors.MessageTooLarge(f"The body has {len(body)} bytes, the limit is {limit}.")
    return body


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as problem:
        raise errors.MessageIllegal(f"body_base64 is not base64 ({problem}): use the standard alphabet.") from problem


def _validate(message: Message) -> None:
    """Validates the fields of a message by the rules of the API, except body and topic.

    Raises MessageIllegal, PropertiesTooLarge or DelayIllegal, with the field and what is valid.
    """
    size = 0
    if message.tags is not None:
        size += _size_of_tags(message.tags)
    if message.keys is not None:
        size += sum(map(_size_of_key, message.keys))
    if message.properties is not None:
        size += properties.size_of(message.properties)
    if size > MAX_PROPERTIES_BYTES:
        raise errors.PropertiesTooLarge(
            f"Properties, tags and keys have {size} bytes together, the limit is {MAX_PROPERTIES_BYTES}."
        )
    _validate_text("sharding_key", message.sharding_key, MAX_SHARDING_KEY)
    if message.born_at is not None:
        _validate_born_at(message.born_at)
    _validate_text("born_host", message.born_host, MAX_BORN_HOST)
    if message.max_reconsume_times is not None:
        errors.require_between("max_reconsume_times", message.max_reconsume_times, 0, MAX_RECONSUME_TIMES)
    _validate_delay(message)


def _size_of_tags(tags: str) -> int:
    if not tags.strip() or "|" in tags or CONTROL.search(tags):
        raise errors.MessageIllegal(
            f"tags {tags!r} cannot be used: give a text that is not blank, without | and control characters."
        )
    return len(tags.encode())


def _size_of_key(key: str) -> int:
    if not properties.is_key(key):
        raise errors.MessageIllegal(f"keys holds {key!r}: {properties.KEY_RULE}.")
    return len(key.encode())


def _validate_text(name: str, text: str | None, most: int) -> None:
    if text is not None and (not text.strip() or len(text) > most or CONTROL.search(text)):
        raise errors.MessageIllegal(
            f"{name} {text[:80]!r} cannot be used: give 1 to {most} characters, not blank, without control characters."
        )


def _validate_born_at(born_at: datetime) -> None:
    """Refuses a time outside of the years 1 to 9999 in UTC, which could be stored but not read again."""
    try:
        born_at.astimezone(UTC)
    except OverflowError as problem:
        raise errors.MessageIllegal(
            f"born_at {born_at.isoformat()} cannot be used: give a time in the years 1 to 9999, in UTC."
        ) from problem


def _validate_delay(message: Message) -> None:
    if message.delay_level is None and message.delay_seconds is None and message.deliver_at is None:
        return
    # Level 0 means no delay, as in RocketMQ.
    delays = {
        "delay_level": message.delay_level or None,
        "delay_seconds": message.delay_seconds,
        "deliver_at": message.deliver_at,
    }
    given = [name for name, value in delays.items() if value is not None]
    if len(given) > 1:
        raise errors.DelayIllegal(f"{' and '.join(given)} exclude each other: give at most one of them.")
    if (message.delay_level or 0) < 0:
        raise errors.DelayIllegal(
            f"delay_level {message.delay_level} is below 0: give a level from 1 to the highest level."
        )
    if (message.delay_seconds or 0) < 0:
        raise errors.DelayIllegal(f"delay_seconds {message.delay_seconds} is below 0: give 0 or more.")
