"""The headers of a message at a target: the fields of the message, and attributes of CloudEvents 1.0."""

from collections.abc import Mapping
from dataclasses import dataclass

from mqbroker_client.messages import StoredMessage


@dataclass(frozen=True, slots=True)
class CloudEvents:
    """What an event says besides its message: where it comes from, and its kind."""

    source: str
    type: str


def of_message(message: StoredMessage) -> dict[str, str]:
    """Id, topic, tags, keys, sharding key, birth and trace of a message, and its properties under their own names."""
    found = {
        "message_id": str(message.message_id),
        "topic": message.topic,
        "tags": message.tags,
        "keys": " ".join(message.keys) or None,
        "sharding_key": message.sharding_key,
        "born_at": None if message.born_at is None else message.born_at.isoformat(),
        "traceparent": message.traceparent,
    }
    return {**message.properties, **{name: value for name, value in found.items() if value is not None}}


def of_event(message: StoredMessage, event: CloudEvents, prefix: str) -> Mapping[str, str]:
    """The attributes of the event, each behind the prefix of the target's binding of CloudEvents."""
    found = {
        "specversion": "1.0",
        "id": str(message.message_id),
        "source": event.source,
        "type": event.type,
        "subject": message.sharding_key,
        "time": None if message.born_at is None else message.born_at.isoformat(),
        "traceparent": message.traceparent,
    }
    return {f"{prefix}{name}": value for name, value in found.items() if value is not None}


def headers(message: StoredMessage, event: CloudEvents | None, prefix: str) -> dict[str, str]:
    """All headers of a message."""
    return {**of_message(message), **({} if event is None else of_event(message, event, prefix))}
