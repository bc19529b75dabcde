"""Questions: what a producer is asked about its half messages, and how its answer is read."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from store import log, messages, topics
from store.db import connections
from store.db.connections import Row

MAX_KEPT_ANSWER = 200
BODIES = ("body", "body_base64")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one transaction, encoded, and the same without its bodies."""

    whole: bytes
    brief: bytes


class Result(msgspec.Struct):
    """One transaction's state in an answer; other fields are the producer's business."""

    transaction_id: uuid.UUID
    state: Literal["COMMIT", "ROLLBACK", "UNKNOWN"]
    remark: str | None = None


class Results(msgspec.Struct):
    """An answer; each result is read by itself, so that a bad one spoils no other."""

    results: list[msgspec.Raw]


async def transactions(halves: Sequence[Row]) -> dict[uuid.UUID, dict[str, Any]]:
    """What a producer is told of each transaction: its first message, and all of them when it has several."""
    places = [(half.log_segment, offset) for half in halves for offset in half.log_offsets]
    rows = await connections.read(log.READ_MESSAGES, log.places(places))
    names = await topics.names({row.topic_id for row in rows})
    told = {row.log_offset: messages.given_out(row, names[row.topic_id]) for row in rows}
    return {half.transaction_id: _transaction(half, told) for half in halves if half.log_offsets[0] in told}


def _transaction(half: Row, told: dict[int, dict[str, Any]]) -> dict[str, Any]:
    first = dict(told[half.log_offsets[0]])
    check_times = half.check_times + 1
    first["properties"] = {**first.get("properties", {}), "TRANSACTION_CHECK_TIMES": str(check_times)}
    first["check_times"] = check_times
    first["last_failure"] = half.last_failure
    if len(half.log_offsets) > 1:
        first["messages"] = [told[offset] for offset in half.log_offsets if offset in told]
    return first


async def encoded(halves: Sequence[Row]) -> dict[uuid.UUID, Question]:
    """The questions about these transactions, as a check-back sends them."""
    found = await transactions(halves)
    encode = msgspec.json.encode
    return {id_: Question(encode(found[id_]), encode(_without_bodies(found.pop(id_)))) for id_ in list(found)}


def _without_bodies(transaction: Mapping[str, Any]) -> dict[str, Any]:
    """`body_omitted` stands in for the body of the transaction's first message, and of each of several."""
    brief = {name: value for name, value in transaction.items() if name not in BODIES}
    brief["body_omitted"] = True
    if "messages" in brief:
        brief["messages"] = [_without_bodies(message) for message in brief["messages"]]
    return brief


def payload(group_name: str, asked: Sequence[bytes]) -> bytes:
    """The body of a check-back about encoded transactions."""
    transactions = [msgspec.Raw(one) for one in asked]
    return msgspec.json.encode(
        {"type": "transaction.check", "producer_group": group_name, "transactions": transactions}
    )


def read(body: bytes) -> dict[uuid.UUID, Result]:
    """The explicit states of an answer; what is missing here decides nothing."""
    try:
        raws = msgspec.json.decode(body, type=Results).results
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    found: dict[uuid.UUID, Result] = {}
    for raw in raws:
        try:
            result = msgspec.json.decode(raw, type=Result)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        # Two different states for one transaction say nothing.
        if result.transaction_id in found and found[result.transaction_id].state != result.state:
            result = Result(result.transaction_id, "UNKNOWN", "two different states")
        found[result.transaction_id] = result
    return found


def kept(body: bytes) -> str:
    """An answer as the history keeps it: truncated, readable."""
    return body[:MAX_KEPT_ANSWER].decode("utf-8", "replace").replace("\x00", "�")
