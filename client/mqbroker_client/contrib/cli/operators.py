"""Commands of `mqb` for operators: lists, lag, dead letters, resets.

Without --yes they only show what they would do.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from mqbroker_client.contrib.cli.output import Output
from mqbroker_client.core.calls import path
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.documents import Document
from mqbroker_client.core.errors import BrokerError

PAGE = 100
AGAIN = "Nothing was changed: the same with --yes does it."


def topics(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    rows = [row for row in every(broker, path("topics")) if given.all or not row.get("system")]
    output.rows(rows, ("name", "queues", "permission", "reserved_hours", "created_at"), "There is no topic.")


def groups(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    kinds = ("consumer", "producer")
    rows = [{"kind": kind, **row} for kind in kinds for row in every(broker, path(f"{kind}-groups"))]
    output.rows(rows, ("kind", "name", "ordered", "paused", "created_at"), "There is no group.")


def keys(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    limits = ("messages_per_second", "bytes_per_second", "max_undecided", "refused")
    columns = ("name", "hint", "scopes", *limits, "created_at", "expires_at")
    output.rows(list(every(broker, path("api-keys"))), columns, "There is no API key.")


def lag(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    found = broker.call("GET", path("consumer-groups", given.group))["lag"]
    rows = [row for row in found if given.topic in (None, row["topic"])]
    columns = ("topic", "queue_id", "next_offset", "max_offset", "lag", "oldest_unacked_at")
    output.rows(rows, columns, f"{given.group} has not read {given.topic or 'any topic'} yet.")


def discarded(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    query = {"producer_group": given.group} if given.group else {}
    rows = [with_topics(row) | {"discarded_at": row["decided_at"]} for row in every(broker, path("discarded"), **query)]
    columns = ("transaction_id", "producer_group", "topics", "check_times", "stored_at", "discarded_at", "last_failure")
    output.rows(rows, columns, "No transaction is discarded.")


def timers(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    levels = [{"kind": f"level {row['level']}", **row} for row in every(broker, path("delay-levels"))]
    rows = [{"kind": "timers", **broker.call("GET", path("timers"))}, *levels]
    output.rows(rows, ("kind", "delay_seconds", "backlog", "next_due_at"), "There is no delay level.")


def reset(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    """Resets offsets. Always makes a dry run first, and then does exactly what the dry run showed."""
    to = int(given.to) if given.to.lstrip("-").isdigit() else given.to
    body: Document = {"topic": given.topic, "to": to, "dry_run": True}
    if given.queue is not None:
        body["queue_id"] = given.queue
    where = path("consumer-groups", given.group, "offsets")
    found = broker.call("PUT", where, body)
    if given.yes:
        found = broker.call("PUT", where, body | {"dry_run": False})
    rows = [row | {"dry_run": found["dry_run"]} for row in found["results"]]
    output.rows(rows, ("queue_id", "from", "to", "replayed", "skipped"), f"{given.group} has no such queue.")
    verb = "are" if given.yes else "would be"
    output.say(f"{found['replayed']} messages {verb} received again, {found['skipped']} {verb} passed over.")
    if not given.yes:
        output.say(AGAIN)


def redrive(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    """Redrives dead letters by their ids, or all; without --yes only shows what it would do."""
    chosen = set(given.message_id)
    if not chosen and not given.all:
        found = list(every(broker, path("dead-letters", given.group)))
        output.rows([_dead(row) for row in found], DEAD_COLUMNS, f"{given.group} has no dead letter.")
        output.say("Name message ids, or give --all.")
        return
    if not given.yes:
        found = [row for row in every(broker, path("dead-letters", given.group)) if _is_chosen(row, chosen)]
        output.rows([_dead(row) for row in found], DEAD_COLUMNS, f"{given.group} has no such dead letter.")
        output.say(f"{len(found)} messages would be sent again. {AGAIN}")
        return
    body: Document = {"message_ids": sorted(chosen)} if chosen else {"all": True}
    if given.to_topic:
        body["to_topic"] = given.to_topic
    results = broker.call("POST", path("dead-letters", given.group, "redrive"), body)["results"]
    output.rows(results, ("message_id", "status", "topic", "detail"), f"{given.group} has no such dead letter.")
    if refused := [row for row in results if row["status"] >= 400]:
        raise BrokerError(f"{len(refused)} of {len(results)} messages were not sent again", code="not_redriven")


DEAD_COLUMNS = ("message_id", "topic", "reconsume_times", "stored_at", "reason")


def every(broker: Broker, target: str, **query: Any) -> Iterator[Document]:
    """The results of all pages of a list."""
    cursor: str | None = None
    while True:
        page = broker.call("GET", target, query=query | {"limit": PAGE} | ({"cursor": cursor} if cursor else {}))
        yield from page["results"]
        cursor = page.get("next")
        if not cursor:
            return


def with_topics(row: Document) -> Document:
    """The fields of a transaction, together with the topics of its messages."""
    return {**row, "topics": list(dict.fromkeys(message["topic"] for message in row["messages"]))}


def _dead(row: Document) -> Document:
    """The fields of a dead letter, together with the fields of its message."""
    return {**row.get("message", {}), **row}


def _is_chosen(row: Document, chosen: set[str]) -> bool:
    return not chosen or _dead(row).get("message_id") in chosen
