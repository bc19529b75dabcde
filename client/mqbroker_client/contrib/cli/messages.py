"""Commands of `mqb` for messages: send, begin, commit, rollback, receive, tail."""

import argparse
import itertools
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from mqbroker_client.contrib.cli.output import Output
from mqbroker_client.core.calls import path
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.messages import Delivery, Entry, Message
from mqbroker_client.core.producers import Producer
from mqbroker_client.core.states import LocalTransactionState

TAIL_WAIT_SECONDS = 1
COLUMNS = ("queue_id", "queue_offset", "message_id", "stored_at", "tags", "keys", "body")


def send(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    sent = Producer(broker, "mqb").send_message(_message(given))
    row = {
        "message_id": str(sent.message_id),
        "topic": sent.topic,
        "queue_id": sent.queue_id,
        "queue_offset": sent.queue_offset,
        "recall_handle": sent.recall_handle,
        "duplicate": sent.duplicate,
    }
    output.one(row, str(sent.message_id))


def begin(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    begun = Producer(broker, given.group).begin_messages([_message(given)])
    row = {"transaction_id": str(begun.transaction_id), "message_id": str(begun.message_id), "state": begun.state}
    output.one(row, str(begun.transaction_id))


def end(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    state = LocalTransactionState(given.command.upper())
    ended = Producer(broker, given.group).end(given.transaction_id, state)
    output.one({"transaction_id": str(ended.transaction_id), "state": ended.state}, ended.state)


def receive(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    consumer = Consumer(broker, given.group)
    received = consumer.receive(
        given.topic, max_messages=given.max, wait_seconds=given.wait, filter=given.filter or None
    )
    output.rows([_row(delivery) for delivery in received], COLUMNS, "There is no message.")
    if given.ack:
        consumer.ack(received)
    elif received:
        output.say("These messages are handed out again after their invisible time, because --ack was not given.")


def tail(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    """Prints the messages of each queue from its end, or from its beginning, without a group's progress; with --follow
    until Ctrl-C.
    """
    queues = broker.call("GET", path("topics", given.topic))["offsets"]
    end_of = {queue["queue_id"]: queue["max_offset"] for queue in queues}
    at = {
        queue["queue_id"]: queue["min_offset"]
        if given.from_ == "earliest"
        else max(queue["min_offset"], queue["max_offset"] - given.last)
        for queue in queues
    }
    reader = Consumer(broker, "mqb")
    entries = [entry for queue_id in at for entry in _up_to(reader, given.topic, queue_id, at, end_of[queue_id])]
    entries.sort(key=lambda entry: entry.message.stored_at)
    if entries or not given.follow:
        output.rows([_row(entry) for entry in entries], COLUMNS, "There is no message.")
    if given.follow:
        _follow(reader, given.topic, at, output)


def _follow(reader: Consumer, topic: str, at: dict[int, int], output: Output) -> None:
    """Reads one queue after another. If all are empty, waits for a message at one queue, each time at another queue."""
    for waits_at in itertools.cycle(at):
        for queue_id in at:
            page = reader.pull(topic, queue_id, at[queue_id], wait_seconds=TAIL_WAIT_SECONDS * (queue_id == waits_at))
            at[queue_id] = page.next_offset
            for entry in page.messages:
                row = _row(entry)
                output.one(row, "  ".join(str(row[column]) for column in COLUMNS))


def _up_to(reader: Consumer, topic: str, queue_id: int, at: dict[int, int], end: int) -> Iterator[Entry]:
    while at[queue_id] < end:
        page = reader.pull(topic, queue_id, at[queue_id])
        at[queue_id] = page.next_offset
        yield from page.messages


def _message(given: argparse.Namespace) -> Message:
    fields: dict[str, Any] = {
        "tags": given.tags,
        "keys": given.key,
        "properties": dict(given.property),
        "sharding_key": given.sharding_key,
        "delay_seconds": given.delay,
        "deliver_at": given.deliver_at,
    }
    if given.id is not None:
        fields["message_id"] = given.id
    return Message(given.topic, _body(given), **fields)


def _body(given: argparse.Namespace) -> bytes:
    if given.file is not None:
        return bytes(Path(given.file).read_bytes())
    if given.body is None or given.body == "-":
        if sys.stdin is None:
            raise ValueError("standard input is closed: give a body, or --file")
        return sys.stdin.buffer.read()
    return bytes(given.body.encode())


def _row(entry: Entry) -> dict[str, Any]:
    row = {
        "queue_id": entry.queue_id,
        "queue_offset": entry.queue_offset,
        "message_id": str(entry.message.message_id),
        "stored_at": entry.message.stored_at.isoformat(timespec="milliseconds"),
        "tags": entry.message.tags,
        "keys": list(entry.message.keys),
        "properties": dict(entry.message.properties),
        "body": entry.body.decode(errors="backslashreplace"),
    }
    if isinstance(entry, Delivery):
        row |= {"delivery_attempt": entry.delivery_attempt, "receipt_handle": entry.receipt_handle}
    return row


def moment(text: str) -> datetime:
    """A time with its time zone, from text."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: give one such as 2026-01-31T12:00:00Z") from None
    return found if found.tzinfo else found.astimezone()


def named_value(text: str) -> tuple[str, str]:
    """The name and value of a property, from text `name=value`; the value may contain `=`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def message_words(words: argparse.ArgumentParser) -> None:
    """Adds the arguments of a command that makes a message."""
    words.add_argument("topic")
    words.add_argument("body", nargs="?", help="the body as a text; - or nothing: read standard input")
    words.add_argument("--file", help="a file with the body, byte by byte")
    words.add_argument("--tags")
    words.add_argument("--key", action="append", default=[], help="a key for look-up; may be repeated")
    words.add_argument(
        "--property", action="append", default=[], type=named_value, metavar="NAME=VALUE", help="may be repeated"
    )
    words.add_argument("--sharding-key")
    words.add_argument("--delay", type=float, metavar="SECONDS")
    words.add_argument("--deliver-at", type=moment, metavar="TIME")
    words.add_argument("--id", type=UUID, help="the id of the message: a second send with this id stores nothing new")
