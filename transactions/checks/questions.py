"""Questions: the document of a check about half messages, and how its answer is read."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from store import messages
from store.db import connections
from store.messages.texts import legible
from store.messages.times import encode
from store.naming import topic_names
from store.segments import log
from transactions.checks.rows import ClaimedHalf
from transactions.rows import STATE_OF, GivenState
from webhooks.endpoint_answers import Answer
from webhooks.results import NoResults, results_of

# Bytes of an answer that the history keeps when it decides nothing.
MAX_KEPT_ANSWER = 200
# What an answer with 2xx that decides nothing lacks.
WITHOUT_STATE = ' without this transaction\'s state: {"results": [{"transaction_id": "…", "state": "COMMIT"}]} has one.'
OTHER_STATUS = ": a state is read from an answer with the status 200."
BODIES = ("body", "body_base64")

# A transaction in a check, as `AskedTransaction` of the schema: the stored message's document, and what the check adds.
Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class Question:
    """The document of one transaction, encoded, and the same without its bodies."""

    whole: bytes
    brief: bytes


class Result(msgspec.Struct):
    """One transaction's state in an answer; other fields are ignored."""

    transaction_id: uuid.UUID
    state: GivenState
    remark: str | None = None


async def transactions(halves: Sequence[ClaimedHalf]) -> dict[uuid.UUID, Document]:
    """The documents of transactions: each is that of its first message, with all of them when it has several."""
    positions = [(half.log_segment, offset) for half in halves for offset in half.log_offsets]
    rows = await connections.read(log.READ_MESSAGES, log.at(positions))
    names = await topic_names.of_ids({row.topic_id for row in rows})
    stored = {row.log_offset: _document(row, names[row.topic_id]) for row in rows}
    return {half.transaction_id: _transaction(half, stored) for half in halves if half.log_offsets[0] in stored}


def _document(row: messages.MessageRow, topic: str) -> Document:
    """A message as it is stored, with the queue that a commit makes it visible in."""
    fields = msgspec.structs.asdict(messages.stored(row, topic)).items()
    return {**{name: value for name, value in fields if value is not msgspec.UNSET}, "queue_id": row.queue_id}


def _transaction(half: ClaimedHalf, stored: Mapping[int, Document]) -> Document:
    first = dict(stored[half.log_offsets[0]])
    check_times = half.check_times + 1
    properties = first.get("properties")
    first["properties"] = {
        **(properties if isinstance(properties, dict) else {}),
        "TRANSACTION_CHECK_TIMES": str(check_times),
    }
    first["check_times"] = check_times
    first["last_failure"] = half.last_failure
    if len(half.log_offsets) > 1:
        first["messages"] = [stored[offset] for offset in half.log_offsets if offset in stored]
    return first


async def encoded(halves: Sequence[ClaimedHalf]) -> dict[uuid.UUID, Question]:
    """The questions about these transactions, as a check-back sends them."""
    found = await transactions(halves)
    return {id_: Question(encode(found[id_]), encode(_without_bodies(found.pop(id_)))) for id_ in list(found)}


def _without_bodies(document: Mapping[str, object]) -> Document:
    """`body_omitted` replaces the body of the transaction's first message, and of each of several."""
    brief = {name: value for name, value in document.items() if name not in BODIES}
    brief["body_omitted"] = True
    several = brief.get("messages")
    if isinstance(several, list):
        brief["messages"] = [_without_bodies(message) for message in several]
    return brief


def payload(group_name: str, encoded_transactions: Sequence[bytes]) -> bytes:
    """The body of a check-back about encoded transactions."""
    raws = [msgspec.Raw(one) for one in encoded_transactions]
    return msgspec.json.encode({"type": "transaction.check", "producer_group": group_name, "transactions": raws})


def read(body: bytes) -> dict[uuid.UUID, Result]:
    """The states that an answer names; a transaction that is missing here is not decided."""
    try:
        results = results_of(body, Result)
    except NoResults:
        return {}
    found: dict[uuid.UUID, Result] = {}
    for result in results:
        # Two different states for one transaction decide nothing.
        if result.transaction_id in found and STATE_OF[found[result.transaction_id].state] != STATE_OF[result.state]:
            found[result.transaction_id] = Result(result.transaction_id, "UNKNOWN", "two different states")
        else:
            found[result.transaction_id] = result
    return found


def void(answer: Answer) -> str:
    """Why an answer with 2xx decided nothing, and what would: for the history, with the beginning of the answer."""
    wanted = WITHOUT_STATE if answer.status == 200 else OTHER_STATUS
    return f"{answer.reason.removesuffix('.')}{wanted} {kept(answer.body)}".strip()


def kept(body: bytes) -> str:
    """The beginning of an answer, readable, for the history."""
    return legible(body[:MAX_KEPT_ANSWER].decode("utf-8", "replace"))
