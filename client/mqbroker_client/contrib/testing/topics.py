"""Topics, queues and delays of the broker inside the process."""

import itertools
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mqbroker_client.core import errors
from mqbroker_client.core.documents import Document
from mqbroker_client.core.ids import uuid7

QUEUES = 4
LEGAL = re.compile(r"[%|a-zA-Z0-9_-]{1,127}")
# The delays of level 1 and following, in seconds.
DELAY_LEVELS = (1, 5, 10, 30, *(60 * minutes for minutes in (*range(1, 11), 20, 30, 60, 120)))


@dataclass(slots=True)
class Topics:
    """The stored messages, each once, by message id; and the queues of each topic with the visible messages."""

    now: Callable[[], datetime]
    queues: dict[str, list[list[Document]]] = field(default_factory=dict)
    _sent: dict[str, tuple[Document, Document]] = field(default_factory=dict)
    _delayed: list[tuple[datetime, Document, int]] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)
    _turns: Any = field(default_factory=itertools.count)

    def of(self, topic: str) -> list[list[Document]]:
        """The queues of a topic; the topic is created at its first use."""
        if not LEGAL.fullmatch(topic):
            raise refused(422, "topic_illegal", f"{topic!r} is no name of a topic.")
        return self.queues.setdefault(topic, [[] for _ in range(QUEUES)])

    def put(self, topic: str, queues: int | None = None, **settings: Any) -> Document:
        """PUT /v1/topics/{topic}."""
        if settings:
            raise NotImplementedError(f"the broker of tests has no {', '.join(settings)} of a topic: use a real one")
        is_new = topic not in self.queues
        found = self.of(topic)
        count = len(found) if queues is None else queues
        if is_new:
            del found[count:]
        elif count < len(found):
            raise refused(422, "queue_illegal", f"The topic {topic} has {len(found)} queues and cannot have fewer.")
        found.extend([] for _ in range(count - len(found)))
        return {"name": topic, "queues": len(found)}

    def send(self, **fields: Any) -> Document:
        """POST /v1/messages."""
        return self.sent_before(fields) or self.publish(self.stored(fields))

    def send_batch(self, topic: str, messages: Sequence[Document]) -> Document:
        """POST /v1/messages/batch."""
        if not messages:
            raise refused(422, "batch_illegal", "messages is empty: give at least one message.")
        if any(message.keys() & {"delay_level", "delay_seconds", "deliver_at"} for message in messages):
            raise refused(422, "batch_illegal", "A message of a batch has no delay.")
        queue_id = self._queue_of({**messages[0], "topic": topic})
        return {"results": [self.send(**{**message, "topic": topic, "queue_id": queue_id}) for message in messages]}

    def sent_before(self, message: Document) -> Document | None:
        """The result of an earlier send of the same message. Raises MessageIdReused if its id had another body."""
        found = self._sent.get(message["message_id"])
        if found is None:
            return None
        if _body(found[0]) != _body(message):
            raise refused(409, "message_id_reused", "Another body has this message_id.")
        return found[1] | {"duplicate": True}

    def stored(self, fields: Document) -> Document:
        """Stores a message, not visible yet, and returns it as a document."""
        count, queue_id = len(self.of(fields["topic"])), fields.get("queue_id")
        if queue_id is not None and not 0 <= queue_id < count:
            raise refused(
                422,
                "queue_illegal",
                f"The topic {fields['topic']} has no queue {queue_id}: its queues are 0 to {count - 1}.",
            )
        now = self.now().isoformat()
        message_id = fields.get("message_id") or str(uuid7())
        kept = {"born_at": now, **fields, "message_id": message_id}
        return kept | {"stored_at": now, "commit_log_offset": next(self._numbers), "reconsume_times": 0}

    def publish(self, message: Document) -> Document:
        """Makes a message visible, now or when its delay is over. Returns the result of its send."""
        queue_id, due = self._queue_of(message), self._due(message)
        result = {name: message[name] for name in ("message_id", "topic", "commit_log_offset", "stored_at")}
        result |= {"queue_id": queue_id, "queue_offset": None, "send_status": "SEND_OK"}
        if due > self.now():
            self._delayed.append((due, message, queue_id))
        else:
            result["queue_offset"] = self.append(message, queue_id)
        self._sent[message["message_id"]] = (message, result)
        return result

    def append(self, message: Document, queue_id: int, topic: str | None = None) -> int:
        """Appends a message to a queue of a topic, by default the message's topic. Returns its offset."""
        read_from = topic or message["topic"]
        queue = self.of(read_from)[queue_id]
        queue.append({"message": message, "read_from": read_from, "queue_id": queue_id, "queue_offset": len(queue)})
        return len(queue) - 1

    def release_due(self) -> None:
        """Makes delayed messages visible that have become due, in the order of time."""
        now = self.now()
        due = sorted((one for one in self._delayed if one[0] <= now), key=lambda one: one[0])
        self._delayed = [one for one in self._delayed if one[0] > now]
        for _, message, queue_id in due:
            self.append(message, queue_id)

    def _queue_of(self, message: Document) -> int:
        count = len(self.of(message["topic"]))
        if message.get("queue_id") is not None:
            return int(message["queue_id"])
        key = message.get("sharding_key")
        return (next(self._turns) if key is None else zlib.crc32(key.encode())) % count

    def _due(self, message: Document) -> datetime:
        if message.get("deliver_at"):
            return datetime.fromisoformat(message["deliver_at"])
        level = min(message.get("delay_level") or 0, len(DELAY_LEVELS))
        seconds = message.get("delay_seconds") or (DELAY_LEVELS[level - 1] if level else 0)
        return self.now() + timedelta(seconds=seconds)


def refused(status: int, code: str, detail: str) -> errors.BrokerError:
    """The error class that the client would raise for the same answer of a real broker."""
    return errors.from_problem(status, {"code": code, "detail": detail}, None, None)


def _body(message: Document) -> object:
    return message.get("body"), message.get("body_base64")
