"""A broker's past, written by SQL: each row is remembered as the export must show it."""

import json
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from backports import zstd
from django.apps import apps
from mqbroker_client.core.ids import uuid7
from psycopg import sql

from tests.broker.ids import id_of

Row = dict[str, Any]
START = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
PACK: Mapping[str, Callable[[bytes], bytes]] = {"zlib": zlib.compress, "zstd": zstd.compress}
PARTITIONED = "SELECT c.relname FROM pg_partitioned_table AS p JOIN pg_class AS c ON c.oid = p.partrelid"


@dataclass
class Half:
    """A transaction that was begun: its messages as the export shows them."""

    transaction_id: uuid.UUID
    group_id: int
    group: str | None
    segment_id: int
    prepared_at: datetime
    messages: list[Row]


@dataclass
class Past:
    """Writes rows of the broker's tables, and keeps beside them the rows that an export of them holds."""

    connection: psycopg.Connection[Any]
    messages: list[Row] = field(default_factory=list)
    entries: list[Row] = field(default_factory=list)
    transactions: list[Row] = field(default_factory=list)
    checks: list[Row] = field(default_factory=list)
    timers: list[Row] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    seconds: int = 0

    def now(self) -> datetime:
        """A later time at each call, with microseconds."""
        self.seconds += 1
        return START + timedelta(seconds=self.seconds, microseconds=7)

    def add(self, table: str, row: Mapping[str, Any], returning: str = "*") -> Any:
        """Inserts a row, with the defaults of its model; returns one of its columns."""
        row = {**defaults(table), **row}
        [values] = self.connection.execute(
            sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING {}").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, row)),
                sql.SQL(", ").join(map(sql.Placeholder, row)),
                sql.SQL(returning),
            ),
            row,
        ).fetchall()
        return values[0]

    def segment(self, segment_id: int, state: str) -> None:
        """Makes a segment with its partitions, or changes the state of the first."""
        self.connection.execute(
            "INSERT INTO segment (id, state) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET state = excluded.state",
            (segment_id, state),
        )
        for (table,) in self.connection.execute(PARTITIONED).fetchall():
            self.connection.execute(
                sql.SQL("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES IN ({})").format(
                    sql.Identifier(f"{table}_{segment_id}"), sql.Identifier(table), sql.Literal(segment_id)
                )
            )

    def topic(self, name: str) -> int:
        """Makes a topic; returns its id."""
        topic_id: int = self.add("topic", {"name": name, "queues": 4, "permission": "rw"}, "id")
        self.names[topic_id] = name
        return topic_id

    def group(self, name: str) -> int:
        """Makes a producer group; returns its id."""
        group_id: int = self.add(
            "producer_group", {"name": name, "reject_transaction_message": False, "checks_paused": False}, "id"
        )
        return group_id

    def store_again(self, segment_id: int, topic_id: int, message: Row) -> None:
        """Stores a message again in a later segment, as the broker does for what still needs its body."""
        same = {"message_id": uuid.UUID(message["message_id"]), "stored_at": message["stored_at"]}
        again = self.store(segment_id, topic_id, message["body"], body_form=message["body_form"], **same)
        again["copy_of"] = message["log_offset"]

    def delay(self, message: Row, topic_id: int, due_at: datetime) -> None:
        """Sets a timer for a message."""
        row = {"queue_id": 1, "due_at": due_at, "log_segment": message["segment"], "log_offset": message["log_offset"]}
        known = {"message_id": uuid.UUID(message["message_id"]), "reconsume_times": 0}
        self.add("timer", {**row, **known, "id": uuid7(), "topic_id": topic_id, "tags_code": 0}, "id")
        self.timers.append({**row, **known, "message_id": message["message_id"], "topic": self.names.get(topic_id)})

    def store(self, segment_id: int, topic_id: int, body: bytes, queue_id: int = 0, **others: Any) -> Row:
        """Stores a message. `others` are columns of the log, but `properties` a dict, and `group` an id and a name."""
        properties, (group_id, group) = others.pop("properties", None), others.pop("group", (None, None))
        pack = PACK.get(str(others.get("body_form")))
        kept_body = body if pack is None else pack(body)
        row = {
            "message_id": uuid7(),
            "topic_id": topic_id,
            "queue_id": queue_id,
            "stored_at": self.now(),
            "body": body,
            "body_form": "text",
            **dict.fromkeys(("born_at", "transaction_id", "tags", "keys", "sharding_key", "traceparent")),
            **others,
        }
        kept = {
            "segment_id": segment_id,
            "producer_group_id": group_id,
            "properties": None if properties is None else json.dumps(properties).encode(),
            "body": kept_body,
        }
        offset = self.connection.execute("SELECT nextval('commit_log_offset')").fetchall()[0][0]
        self.add("commit_log", {**row, **kept, "log_offset": offset})
        message = {
            **{column: value for column, value in row.items() if column != "topic_id"},
            "segment": segment_id,
            "log_offset": offset,
            "copy_of": None,
            "message_id": str(row["message_id"]),
            "transaction_id": row["transaction_id"] and str(row["transaction_id"]),
            "topic": self.names.get(topic_id),
            "namespace": namespace_of(self.names.get(topic_id)),
            "producer_group": group,
            "properties": properties,
            "body_bytes": len(kept_body),
            "copied": False,
        }
        self.messages.append(message)
        return message

    def enqueue(self, segment_id: int, topic_id: int, queue_id: int, offset: int, message: Row, **others: Any) -> None:
        """Makes a message visible. `others` are columns of the consume queue."""
        row = {
            "queue_id": queue_id,
            "queue_offset": offset,
            "log_segment": message["segment"],
            "log_offset": message["log_offset"],
            "tags_code": -(2**40),
            "reconsume_times": 0,
            "entered_at": self.now(),
            "real_queue_id": None,
            "due_at": None,
            **others,
        }
        self.add("consume_queue", {**row, "segment_id": segment_id, "topic_id": topic_id})
        real_topic_id = row.pop("real_topic_id", None)
        self.entries.append(
            {
                **{column: value for column, value in row.items() if column != "real_tags_code"},
                "segment": segment_id,
                "topic": self.names.get(topic_id),
                "namespace": namespace_of(self.names.get(topic_id)),
                "topic_id": topic_id,
                "real_topic": self.names.get(real_topic_id or 0),
                "deliver_at": None if real_topic_id is None else at_milliseconds(row["tags_code"]),
                "copied": False,
            }
        )

    def begin(self, segment_id: int, group: tuple[int, str | None], topics: Sequence[int], **others: Any) -> Half:
        """Stores the messages of a transaction, one to each of the topics. `others` are columns of the log."""
        transaction_id = uuid7()
        stored = [
            self.store(segment_id, topic_id, b"half", transaction_id=transaction_id, group=group, **others)
            for topic_id in topics
        ]
        return Half(transaction_id, *group, segment_id, self.now(), stored)

    def say(
        self,
        segment_id: int,
        half: Half,
        decision: str,
        by: str,
        queue_offsets: list[int] | None = None,
        **others: Any,
    ) -> datetime:
        """Appends an operation; returns its time."""
        said_at = self.now()
        row = {
            "segment_id": segment_id,
            "operation_id": self.connection.execute("SELECT nextval('operation_id')").fetchall()[0][0],
            "transaction_id": half.transaction_id,
            "producer_group_id": half.group_id,
            "decision": decision,
            "decided_by": by,
            "decided_at": said_at,
            "check_times": 0,
            "stored_at": half.prepared_at,
            "log_segment": half.segment_id,
            **places(half, {"queue_offset": queue_offsets}),
            **others,
        }
        self.add("operation", row)
        return said_at

    def end(
        self,
        segment_id: int,
        half: Half,
        decision: str,
        by: str,
        checks: int = 0,
        remark: str | None = None,
        queue_offsets: list[int] | None = None,
    ) -> None:
        """Decides a transaction. `queue_offsets`: of its messages, when it is committed."""
        decided_at = self.say(
            segment_id, half, decision, by, check_times=checks, remark=remark, queue_offsets=queue_offsets
        )
        state = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}[decision]
        self._outcome(half, segment_id, state, by, decided_at, checks, remark)

    def leave(
        self, half: Half, checks: int = 0, discarded: datetime | None = None, by: str | None = None, **others: Any
    ) -> None:
        """Leaves a transaction undecided, or discarded at a time. `others` are columns of the half message."""
        row = {
            "transaction_id": half.transaction_id,
            "producer_group_id": half.group_id,
            "stored_at": half.prepared_at,
            "immunity_seconds": 6.0,
            "next_check_at": half.prepared_at,
            "check_times": checks,
            "discarded_at": discarded,
            "log_segment": half.segment_id,
            **places(half, {"tags_code": None if len(half.messages) == 1 else [0] * len(half.messages)}),
            **others,
        }
        self.add("half_message", row)
        self._outcome(half, half.segment_id, "DISCARDED" if discarded else "PREPARED", by, discarded, checks, None)

    def check(self, segment_id: int, half: Half, **others: Any) -> None:
        """Appends a check. `others` are columns of the check attempts."""
        row = {
            "transaction_id": half.transaction_id,
            "endpoint_url": None,
            "asked_at": self.now(),
            "counted": True,
            **dict.fromkeys(("status", "latency_ms", "answer", "reason")),
            **others,
        }
        self.add("check_attempt", {**row, "attempt_id": id_of(row["asked_at"]), "segment_id": segment_id})
        self.checks.append({**row, "transaction_id": str(half.transaction_id), "segment": segment_id, "copied": False})

    def _outcome(
        self,
        half: Half,
        segment_id: int | None,
        state: str,
        by: str | None,
        at: datetime | None,
        checks: int,
        remark: str | None,
    ) -> None:
        self.transactions.append(
            {
                "segment": segment_id,
                "transaction_id": str(half.transaction_id),
                "producer_group": half.group,
                "namespace": namespace_of(half.group),
                "state": state,
                "prepared_at": half.prepared_at,
                "decided_at": at,
                "decided_by": by,
                "seconds_to_decision": at and (at - half.prepared_at) / timedelta(seconds=1),
                "check_times": checks,
                "messages": len(half.messages),
                "remark": remark,
                "copied": False,
            }
        )


def namespace_of(name: str | None) -> str | None:
    """What a name of a topic or a group begins with, before a %; behind the prefix of retries or dead letters."""
    own = (name or "").removeprefix("%RETRY%").removeprefix("%DLQ%")
    return own.partition("%")[0] if "%" in own else None


def places(half: Half, others: Mapping[str, list[int] | None]) -> Row:
    """The columns of a transaction's message and others of it, by list; of several messages the arrays of that name."""
    columns = {
        "log_offset": [message["log_offset"] for message in half.messages],
        "message_id": [uuid.UUID(message["message_id"]) for message in half.messages],
        "topic_id": [1] * len(half.messages),
        "queue_id": [0] * len(half.messages),
        **others,
    }
    if len(half.messages) > 1:
        return {f"{name}s": values for name, values in columns.items()}
    return {name: values and values[0] for name, values in columns.items()}


def defaults(table: str) -> Row:
    """What a table's model puts into columns that the caller does not name."""
    model = next(model for model in apps.get_models() if model._meta.db_table == table)
    return {str(column.column): column.get_default() for column in model._meta.concrete_fields if column.has_default()}


def at_milliseconds(milliseconds: int) -> datetime:
    """A time from its Unix milliseconds."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
