"""Writes rows as the broker leaves them, for pages that only read: a story of half an hour in one second."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from mqbroker_client.core.ids import uuid7
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.broker.ids import id_of


@dataclass
class Broker:
    """A migrated database; each function adds what one call to the broker would have left in it."""

    connection: psycopg.Connection[Any]
    now: datetime
    segment: int = 1
    ends: dict[tuple[int, int], int] = field(default_factory=dict)

    def insert(self, table: str, **columns: object) -> Any:
        """Insert a row and give it back."""
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING *").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(map(sql.Placeholder, columns)),
        )
        row = self.connection.execute(statement, columns).fetchone()
        assert row is not None
        return row

    def next_of(self, sequence: str) -> int:
        """The next number of a sequence. Log offsets and operation ids rise with time: tests write the oldest first."""
        row = self.connection.execute("SELECT nextval(%s::regclass)", (sequence,)).fetchone()
        assert row is not None
        return int(row[0])

    def topic(self, name: str, queues: int = 4) -> int:
        """A topic; its id."""
        return int(self.insert("topic", name=name, queues=queues, permission="rw").id)

    def producer_group(self, name: str, checks_paused: bool = False) -> int:
        """A producer group; its id."""
        row = self.insert("producer_group", name=name, reject_transaction_message=False, checks_paused=checks_paused)
        return int(row.id)

    def endpoint(self, group: int, url: str, state: str = "healthy", **more: object) -> int:
        """An endpoint of a producer group; its id."""
        defaults = {"max_batch": 1, "timeout_seconds": 5, "concurrency": 16, "failures": 0, "secret": "whsec_c2VjcmV0"}
        return int(self.insert("endpoint", group_id=group, url=url, state=state, **defaults | more).id)

    def consumer_group(self, name: str, ordered: bool = False, paused: bool = False, limits: object = None) -> int:
        """A consumer group; its id."""
        kept = None if limits is None else Jsonb(limits)
        settings = {"ordered": ordered, "paused": paused, "limits": kept}
        row = self.insert("consumer_group", name=name, start_at="earliest", retry_policy=Jsonb({}), **settings)
        return int(row.id)

    def waiting(self, group: int, topic: int, key: str, offsets: list[int]) -> None:
        """Messages of a key in queue 0 that a group has read ahead."""
        place = {"log_segment": self.segment, "log_offset": offsets[0], "queue_id": 0, "first_offset": offsets[0]}
        keys = {"group_id": group, "topic_id": topic, "queue_topic_id": topic, "fair_key": key}
        self.insert("waiting", **keys, **place, offsets=offsets, taken=0)

    def api_key(self, name: str, hint: str, scopes: list[str], digest: bytes) -> None:
        """An API key as it is kept."""
        self.insert("api_key", name=name, hint=hint, scopes=Jsonb(scopes), digest=digest)

    def outbox(self, name: str, **more: object) -> None:
        """An outbox of a database that no process reaches."""
        places = {"source_url": "postgresql://shop:secret@127.0.0.1:9/shop", "server": "127.0.0.1"}
        places |= {"port": "9", "database": "shop", "user": "shop"}
        self.insert("outbox", name=name, topics=["orders"], **places, **more)

    def schedule(self, name: str, **more: object) -> None:
        """A schedule whose time is far off."""
        parts = {"message": Jsonb({"topic": "orders"}), "body": Jsonb({"body": "report"})}
        next_at = self.now + timedelta(days=1)
        self.insert("schedule", name=name, cron="0 3 1 1 *", next_at=next_at, **parts, **more)

    def stored(self, topic: int, queue: int, body: bytes, age: timedelta, **more: Any) -> Any:
        """A message in the commit log."""
        properties = more.pop("properties", None)
        return self.insert(
            "commit_log",
            segment_id=more.pop("segment_id", self.segment),
            log_offset=self.next_of("commit_log_offset"),
            stored_at=self.now - age,
            topic_id=topic,
            queue_id=queue,
            message_id=more.pop("message_id", None) or uuid7(),
            body=body,
            body_form="text",
            properties=json.dumps(properties).encode() if properties else None,
            **more,
        )

    def visible(self, message: Any, due_at: datetime | None = None) -> int:
        """The entry that makes a stored message visible; its queue offset. A timer's release has its due time."""
        queue = (message.topic_id, message.queue_id)
        offset = self.ends.get(queue, 0)
        self.ends[queue] = offset + 1
        self.insert(
            "consume_queue",
            segment_id=self.segment,
            topic_id=queue[0],
            queue_id=queue[1],
            queue_offset=offset,
            log_segment=self.segment,
            log_offset=message.log_offset,
            tags_code=0,
            reconsume_times=0,
            entered_at=message.stored_at,
            due_at=due_at,
        )
        return offset

    def half(self, group: int, topic: int, body: bytes, age: timedelta, check_times: int = 0, **more: Any) -> UUID:
        """A half message that waits for its decision, or was discarded; its transaction id."""
        transaction_id = more.pop("transaction_id", None) or uuid7()
        of_message = {name: more.pop(name) for name in ("tags", "keys", "properties", "traceparent") if name in more}
        message = self.stored(topic, 0, body, age, transaction_id=transaction_id, producer_group_id=group, **of_message)
        defaults = {
            "next_check_at": self.now + timedelta(seconds=12),
            "immunity_seconds": 6.0,
            "last_failure": None,
            "exhausted": False,
        }
        self.insert(
            "half_message",
            transaction_id=transaction_id,
            producer_group_id=group,
            stored_at=message.stored_at,
            check_times=check_times,
            log_segment=self.segment,
            log_offset=message.log_offset,
            message_id=message.message_id,
            topic_id=topic,
            queue_id=0,
            **defaults | more,
        )
        return transaction_id

    def check(self, transaction_id: UUID, ago: timedelta, endpoint: tuple[int, str] | None, **answer: object) -> None:
        """A check that was asked, and its answer."""
        self.insert(
            "check_attempt",
            segment_id=self.segment,
            attempt_id=id_of(self.now - ago),
            transaction_id=transaction_id,
            endpoint_id=endpoint[0] if endpoint else None,
            endpoint_url=endpoint[1] if endpoint else None,
            asked_at=self.now - ago,
            **{"counted": endpoint is not None} | answer,
        )

    def said(self, message: Any, decision: str, ago: timedelta, by: str = "producer", **more: Any) -> None:
        """What was said of the transaction of a stored message."""
        self.insert(
            "operation",
            segment_id=self.segment,
            operation_id=self.next_of("operation_id"),
            transaction_id=message.transaction_id,
            producer_group_id=message.producer_group_id,
            decision=decision,
            decided_by=by,
            decided_at=self.now - ago,
            stored_at=message.stored_at,
            log_segment=self.segment,
            log_offset=message.log_offset,
            message_id=message.message_id,
            topic_id=message.topic_id,
            queue_id=message.queue_id,
            **{"check_times": 0, "queue_offset": None, "remark": None} | more,
        )

    def committed(self, group: int, topic: int, body: bytes, ago: timedelta, queue: int = 0, **more: Any) -> UUID:
        """A transaction that was committed; its id."""
        message = self.stored(
            topic, queue, body, ago + timedelta(seconds=1), transaction_id=uuid7(), producer_group_id=group, **more
        )
        self.said(message, "COMMIT", ago, queue_offset=self.visible(message))
        return UUID(str(message.transaction_id))

    def rolled_back(self, group: int, topic: int, ago: timedelta) -> UUID:
        """A transaction that was rolled back; its id."""
        message = self.stored(
            topic, 0, b"never seen", ago + timedelta(seconds=1), transaction_id=uuid7(), producer_group_id=group
        )
        self.said(message, "ROLLBACK", ago)
        return UUID(str(message.transaction_id))

    def progress(self, group: int, topic: int, queue: int, next_offset: int, moves: int = 1) -> None:
        """How far a consumer group has come in a queue, after some moves."""
        for move in range(1, moves + 1):
            self.insert(
                "progress",
                segment_id=self.segment,
                reader_id=group,
                topic_id=topic,
                queue_id=queue,
                move=move,
                next_offset=next_offset - moves + move,
                moved_at=self.now - timedelta(seconds=moves - move),
            )

    def receipt(
        self, group: int, topic: int, queue: int, offset: int, state: str, sharding_key: str | None, **more: object
    ) -> None:
        """A delivery of a group's message: in flight, or of an ordered group held or parked."""
        self.insert(
            "receipt",
            group_id=group,
            topic_id=topic,
            queue_id=queue,
            queue_offset=offset,
            nonce=7,
            expires_at=self.now + timedelta(minutes=1),
            received_at=self.now,
            log_segment=self.segment,
            log_offset=offset,
            tags_code=0,
            reconsume_times=0,
            origin_topic_id=topic,
            state=state,
            sharding_key=sharding_key,
            **more,
        )

    def many_halves(self, group: int, topic: int, number: int) -> None:
        """As many half messages as an outage leaves."""
        self.connection.execute(
            """
            INSERT INTO half_message (
                transaction_id, producer_group_id, stored_at, immunity_seconds, next_check_at, check_times, exhausted,
                log_segment, log_offsets, message_ids, topic_ids, queue_ids, tags_codes
            )
            SELECT gen_random_uuid(), %s, now(), 6, now() + make_interval(secs => n), 0, false,
                   1, ARRAY[n], ARRAY[gen_random_uuid()], ARRAY[%s], ARRAY[0], ARRAY[0]
            FROM generate_series(1, %s) AS n
            """,
            (group, topic, number),
        )

    def schedule_topic(self) -> int:
        """The id of the topic whose queues are the delay levels."""
        row = self.connection.execute("SELECT id FROM topic WHERE name = 'SCHEDULE_TOPIC_XXXX'").fetchone()
        assert row is not None
        return int(row.id)

    def delayed(self, level: int, due_in: timedelta) -> None:
        """A message that waits in a delay level."""
        message = self.stored(self.schedule_topic(), level - 1, b"later", timedelta(seconds=1))
        offset = self.visible(message)
        due_ms = int((self.now + due_in).timestamp() * 1000)
        self.connection.execute(
            "UPDATE consume_queue SET tags_code = %s WHERE (topic_id, queue_id, queue_offset) = (%s, %s, %s)",
            (due_ms, message.topic_id, message.queue_id, offset),
        )

    def released(self, level: int, next_offset: int) -> None:
        """How far the scheduler, reader 0, has released a delay level."""
        self.progress(0, self.schedule_topic(), level - 1, next_offset)
