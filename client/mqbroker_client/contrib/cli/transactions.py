"""Commands of `mqb` for one transaction or message: what is pending, its history, and an operator's decision."""

import argparse

from mqbroker_client.contrib.cli.operators import every, with_topics
from mqbroker_client.contrib.cli.output import Output
from mqbroker_client.core.calls import path
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.documents import Document

# The fields of an event to print, in their order; --json has all.
DETAILS = (
    *("state", "answer", "by", "remark", "status", "reason", "endpoint_url"),
    *("group", "topic", "queue_id", "queue_offset", "delivery_attempt", "deliver_at"),
)
PENDING = ("transaction_id", "producer_group", "topics", "check_times", "stored_at", "next_check_at", "last_failure")
EVENTS = ("at", "event", "details")


def pending(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    query = {"state": "PREPARED"} | ({"producer_group": given.group} if given.group else {})
    rows = [with_topics(row) for row in every(broker, path("transactions"), **query)]
    columns = (
        "transaction_id",
        "producer_group",
        "topics",
        "check_times",
        "stored_at",
        "next_check_at",
        "last_failure",
    )
    output.rows(rows, columns, "No transaction is pending.")


def transaction(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    found = broker.call("GET", path("transactions", str(given.transaction_id)))
    if output.as_json:
        output.one(found, "")
        return
    output.rows([with_topics(found)], ("transaction_id", "producer_group", "topics", "state", "check_times"), "")
    output.rows([_event(row) for row in found["history"]], EVENTS, "")


def trace(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    found = broker.call("GET", path("messages", str(given.message_id), "trace"))
    if output.as_json:
        output.one(found, "")
        return
    output.rows([found], ("message_id", "topic", "queue_id", "state", "transaction_id"), "")
    output.rows([_event(row) for row in found["events"]], EVENTS, "")


def resume(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    body = {"reason": given.reason} if given.reason else {}
    found = broker.call("POST", path("discarded", str(given.transaction_id), "resume"), body)
    output.one(found, f"{given.transaction_id} is checked again")


def resolve(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    body = {"state": given.state.upper(), "reason": given.reason}
    found = broker.call("POST", path("transactions", str(given.transaction_id), "resolve"), body)
    output.one(found, found["state"])


def _event(row: Document) -> Document:
    details = (f"{name}={row[name]}" for name in DETAILS if row.get(name) is not None)
    return {"at": row["at"], "event": row["event"], "details": " ".join(details) or None}
