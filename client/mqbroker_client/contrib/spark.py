"""A sink for Spark: each row of a frame, or of a stream, is sent as a message.

    register(spark)
    frame.write.format("mqbroker").option("topic", "prices").mode("append").save()

Tasks send requests of many rows, to the broker of MQBROKER_URL with the key of MQBROKER_API_KEY; both variables are
read by `register`. Spark repeats a failed task, so each row has a `message_id`: a row that is sent again with this id
stores nothing new.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any
from uuid import UUID

from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import DataType, StructType

from mqbroker_client.core import environment
from mqbroker_client.core.calls import producer as calls
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.errors import BrokerError, RateLimited, Unavailable
from mqbroker_client.core.messages import Message

FORMAT = "mqbroker"
OPTIONS = ("topic",)
# Spark also passes its own options to the sink.
OF_SPARK = ("checkpointlocation",)
# The columns that a row may have, each with its types in Spark. `topic` may be an option instead.
COLUMNS = {
    "topic": ("string",),
    "body": ("binary", "string"),
    "message_id": ("string",),
    "tags": ("string",),
    "keys": ("array<string>", "string"),
    "properties": ("map<string,string>",),
    "sharding_key": ("string",),
    "queue_id": ("int", "smallint", "tinyint"),
    "delay_level": ("int", "smallint", "tinyint"),
    "delay_seconds": ("double", "float", "int", "bigint"),
    "deliver_at": ("timestamp",),
    "born_at": ("timestamp",),
    "traceparent": ("string",),
}
NEEDED = ("body", "message_id")
# This many rows are collected before they are sent, in several requests if their bodies are large.
ROWS = 1_000
BYTES = 4 * 1024 * 1024


class WriteRefused(ValueError):
    """A frame or an option cannot be used; no row was sent."""


class RowRefused(Exception):
    """A row is not a valid message, or the broker refused it. Earlier rows, and rows of other tasks, may be stored."""


def register(spark: SparkSession) -> None:
    """Registers the format `mqbroker` in a session, for writing.

    In a local session the workers use this process's Python, unless PYSPARK_PYTHON names another one. On a cluster,
    this package must be installed for the workers.
    """
    context = spark.sparkContext
    if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    context.environment |= environment.given_environment()
    spark.dataSource.register(MessageSink)


class MessageSink(DataSource):
    """The sink that sends rows as messages."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> "MessageWriter":
        """Sends the rows of a frame. Raises WriteRefused."""
        return MessageWriter(_sending(self.options, schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> "MessageStreamWriter":
        """Sends the rows of a stream's batches. Raises WriteRefused."""
        return MessageStreamWriter(_sending(self.options, schema, overwrite))


@dataclass(frozen=True, slots=True)
class Sending:
    """The parameters with which a task sends rows."""

    url: str
    topic: str | None
    api_key: str = field(repr=False)

    def send(self, rows: Iterable[Row]) -> WriterCommitMessage:
        """Sends the rows of one task, in a Spark worker. Raises RowRefused, or BrokerError if the broker is away."""
        with Broker(self.url, self.api_key) as broker:
            for messages in _batches(self._message(row.asDict(recursive=True)) for row in rows):
                sent = broker.do_all([calls.send(message) for message in messages])
                for message, result in zip(messages, sent, strict=True):
                    if isinstance(result, BrokerError):
                        _send_alone(broker, message, result)
        return WriterCommitMessage()

    def _message(self, row: dict[str, Any]) -> Message:
        given = {name: value for name, value in row.items() if value is not None}
        try:
            topic = self.topic if self.topic is not None and "topic" not in given else given.pop("topic")
            given["message_id"] = UUID(given["message_id"])
            for name in ("deliver_at", "born_at"):
                if name in given:
                    given[name] = given[name].astimezone(UTC)
            return Message(topic, given.pop("body"), **given)
        except KeyError as missing:
            raise RowRefused(f"{missing.args[0]} is null in the row {_shown(row)}: each row needs it.") from missing
        except ValueError as problem:
            raise RowRefused(f"message_id of the row {_shown(row)} is no UUID: {problem}.") from problem


class MessageWriter(DataSourceWriter):
    """Sends a frame. Rows that were sent stay sent, even if the frame's job fails later."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Sends the rows of one task, in a Spark worker."""
        return self._sending.send(iterator)


class MessageStreamWriter(DataSourceStreamWriter):
    """Sends the batches of a stream. A batch that is repeated after a crash stores nothing twice."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Sends the rows of one task, in a Spark worker."""
        return self._sending.send(iterator)


def _sending(options: Mapping[str, str], schema: StructType, overwrite: bool) -> Sending:
    """The validated parameters of a write."""
    if overwrite:
        raise WriteRefused('Messages are only added: give mode("append").')
    for name in options:
        if name.lower() not in (*OPTIONS, *OF_SPARK):
            raise WriteRefused(f"There is no option {name} of writing: give {OPTIONS[0]}, or none.")
    given = {name.lower(): value for name, value in options.items()}
    for column in schema:
        _require_fit(column.name, column.dataType)
    topic = given.get("topic")
    for name in (*NEEDED, *(() if topic else ("topic",))):
        if name not in schema.names:
            way_out = "add it, or give the option topic" if name == "topic" else "add it"
            raise WriteRefused(f"The frame has no column {name}: {way_out}.")
    try:
        url, api_key = environment.from_environment()
    except ValueError as missing:
        raise WriteRefused(f"No broker is named: {missing} before `register`.") from missing
    return Sending(url, topic, api_key)


def _require_fit(name: str, type_: DataType) -> None:
    if name not in COLUMNS:
        raise WriteRefused(f"A message has no {name}: leave the column out, or name it one of {', '.join(COLUMNS)}.")
    if type_.simpleString() not in COLUMNS[name]:
        raise WriteRefused(f"The column {name} is {type_.simpleString()}: make it {' or '.join(COLUMNS[name])}.")


def _batches(messages: Iterable[Message]) -> Iterator[list[Message]]:
    gathered: list[Message] = []
    size = 0
    for message in messages:
        gathered.append(message)
        size += len(message.body)
        if len(gathered) >= ROWS or size >= BYTES:
            yield gathered
            gathered, size = [], 0
    if gathered:
        yield gathered


def _send_alone(broker: Broker, message: Message, error: BrokerError) -> None:
    """Repeats a message that the broker was too busy to accept. Raises RowRefused if the broker refuses it."""
    if isinstance(error, Unavailable | RateLimited):
        broker.do(calls.send(message))
        return
    raise RowRefused(f"The message {message.message_id} to {message.topic} was refused: {error}") from error


def _shown(row: Mapping[str, object]) -> str:
    """The row without its body, for an error message."""
    return str({name: value for name, value in row.items() if name != "body"})[:200]
