"""A task call as a message: it contains the message that Celery would publish, and how a relay publishes it.

Celery itself makes headers and body (its message protocol 2), chooses the queue and serializes. A producer that does
not publish (`Taker`) receives the result.
"""

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from uuid import NAMESPACE_OID, UUID, uuid5

from celery import Celery
from kombu import Connection, Producer
from kombu.compression import compress
from kombu.serialization import dumps
from kombu.utils.json import dumps as to_json
from kombu.utils.json import loads as from_json

# Options of a publish that belong to the producer's connection, and not to the message.
_OF_CONNECTION = ("retry", "retry_policy", "timeout", "confirm_timeout", "declare")


@dataclass(frozen=True, slots=True)
class Call:
    """A task call: the serialized body, and all options of its publish."""

    body: bytes
    fields: Mapping[str, Any]
    #: The queues that Celery would have declared, by name.
    queues: tuple[str, ...] = ()

    @property
    def task_id(self) -> str:
        return str(self.fields["headers"]["id"])

    @property
    def task(self) -> str:
        return str(self.fields["headers"]["task"])

    @property
    def message_id(self) -> UUID:
        """The id of the message, which is the id of the task."""
        return uuid_of(self.task_id)

    def encoded(self) -> bytes:
        """The call as the body of a message. Raises TypeError for a header that JSON cannot express."""
        text: dict[str, Any]
        try:
            text = {"body": self.body.decode()}
        except UnicodeDecodeError:
            text = {"body_base64": base64.b64encode(self.body).decode()}
        return str(to_json({**text, "fields": dict(self.fields), "queues": list(self.queues)})).encode()

    @classmethod
    def of(cls, encoded: bytes) -> Self:
        """The call in the body of a message. Raises ValueError for any other body."""
        try:
            found = from_json(encoded)
            text, fields = found.get("body"), dict(found["fields"])
            body = base64.b64decode(found["body_base64"]) if text is None else text.encode()
            # These options are removed, because another program may have written them: a publish with retries could
            # continue after the relay's end.
            kept = {name: value for name, value in fields.items() if name not in _OF_CONNECTION}
            call = cls(body, kept, tuple(found["queues"]))
            # Raises KeyError if the call lacks what a publisher needs.
            _ = call.task_id, call.task, fields["exchange"], fields["routing_key"]
        except (ValueError, TypeError, KeyError, AttributeError) as problem:
            raise ValueError(f"the message is no call of a task ({type(problem).__name__}: {problem})") from problem
        return call

    def publish(self, app: Celery, producer: Producer, **options: Any) -> None:
        """Publishes the call to the app's broker, and declares missing queues of the call there."""
        declared = [app.amqp.queues[name] for name in self.queues]
        producer.publish(self.body, declare=declared, **self.fields, **options)


def uuid_of(task_id: str) -> UUID:
    """The id of a task as a UUID; for another id a UUID that is always the same for this id."""
    with suppress(ValueError):
        return UUID(task_id)
    return uuid5(NAMESPACE_OID, task_id)


class Taker:
    """Takes the place of Celery's producer, and keeps the first message that it should publish."""

    serializer = None

    def __init__(self) -> None:
        # This connection is never opened: Celery only reads its error classes.
        self.connection = Connection("memory://")
        self.call: Call | None = None

    def publish(
        self, body: object, *, serializer: str | None = None, compression: str | None = None, **fields: Any
    ) -> None:
        """Keeps the message. Ignores the event that Celery publishes afterwards to report that the task was sent."""
        if self.call is not None:
            return
        content_type, content_encoding, dumped = dumps(body, serializer)
        payload: bytes = dumped.encode() if isinstance(dumped, str) else dumped
        headers = dict(fields.pop("headers", None) or {})
        if compression:
            payload, headers["compression"] = compress(payload, compression)
        queues = tuple(entity.name for entity in fields.get("declare") or ())
        kept = {name: value for name, value in fields.items() if name not in _OF_CONNECTION and value is not None}
        kept |= {"headers": headers, "content_type": content_type, "content_encoding": content_encoding}
        self.call = Call(payload, kept, queues)
