"""The headers of a message at a target: the message's fields and properties, and attributes of CloudEvents 1.0."""

from collections.abc import Mapping
from dataclasses import dataclass

from mqbroker_client.contrib.relay.reserved import FIELDS, Reserved
from mqbroker_client.core.messages import StoredMessage


@dataclass(frozen=True, slots=True)
class CloudEvents:
    """The source and the type of events, which a message does not have."""

    source: str
    type: str


def of_message(message: StoredMessage) -> dict[str, str]:
    """The headers for id, topic, tags, keys, sharding key, birth time and trace of a message."""
    values = (
        str(message.message_id),
        message.topic,
        message.tags,
        " ".join(message.keys) or None,
        message.sharding_key,
        None if message.born_at is None else message.born_at.isoformat(),
        message.traceparent,
    )
    return {name: value for name, value in zip(FIELDS, values, strict=True) if value is not None}


def of_event(message: StoredMessage, event: CloudEvents, prefix: str) -> Mapping[str, str]:
    """The attributes of the CloudEvents event, each with the prefix that the target uses for CloudEvents."""
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


def headers(message: StoredMessage, reserved: Reserved, event: CloudEvents | None, prefix: str) -> dict[str, str]:
    """All headers of a message. A property keeps its name as a header, unless the name is reserved."""
    own = {reserved.header(name): value for name, value in message.properties.items()}
    return {**own, **of_message(message), **({} if event is None else of_event(message, event, prefix))}
