"""Questions: the document of a check, and how an endpoint's answer is read."""

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
from transactions import STATE_OF, GivenState
from transactions.rows import ClaimedHalf
from webhooks.endpoint_answers import Answer
from webhooks.results import NoResults, results_of

# The most bytes of a void answer that the history keeps.
MAX_KEPT_ANSWER = 200
# The fault of an answer with 2xx that decides nothing.
WITHOUT_STATE = ' without this transaction\'s state: {"results": [{"transaction_id": "…", "state": "COMMIT"}]} has one.'
OTHER_STATUS = ": a state is read from an answer with the status 200."
BODIES = ("body", "body_base64")

# A transaction in a check: the document of its stored message, and the fields of the check. In the schema:
# `AskedTransaction`.
Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class Question:
    """The encoded document of one transaction in two forms: with the bodies and without."""

    whole: bytes
    brief: bytes


class Result(msgspec.Struct):
    """The state of one transaction in an answer; other fields are ignored."""

    transaction_id: uuid.UUID
    state: GivenState
    remark: str | None = None


async def transactions(halves: Sequence[ClaimedHalf]) -> dict[uuid.UUID, Document]:
    """The document of each transaction: its first message, and a list of all messages if there are several."""
    positions = [(half.log_segment, offset) for half in halves for offset in half.log_offsets]
    rows = await connections.read(log.READ_MESSAGES, log.at(positions))
    names = await topic_names.of_ids({row.topic_id for row in rows})
    stored = {row.log_offset: _document(row, names[row.topic_id]) for row in rows}
    return {half.transaction_id: _transaction(half, stored) for half in halves if half.log_offsets[0] in stored}


def _document(row: messages.MessageRow, topic: str) -> Document:
    """The document of a stored message, with the queue in which a commit makes it visible."""
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
    """The questions about these transactions, encoded for a check-back."""
    found = await transactions(halves)
    return {id_: Question(encode(found[id_]), encode(_without_bodies(found.pop(id_)))) for id_ in list(found)}


def _without_bodies(document: Mapping[str, object]) -> Document:
    """The document with `body_omitted` in place of the body of each message."""
    brief = {name: value for name, value in document.items() if name not in BODIES}
    brief["body_omitted"] = True
    several = brief.get("messages")
    if isinstance(several, list):
        brief["messages"] = [_without_bodies(message) for message in several]
    return brief


def payload(group_name: str, encoded_transactions: Sequence[bytes]) -> bytes:
    """The body of a call with encoded questions."""
    raws = [msgspec.Raw(one) for one in encoded_transactions]
    return msgspec.json.encode({"type": "transaction.check", "producer_group": group_name, "transactions": raws})


def read(body: bytes) -> dict[uuid.UUID, Result]:
    """The states by transaction in an answer. A transaction that is missing is not decided."""
    try:
        results = results_of(body, Result)
    except NoResults:
        return {}
    found: dict[uuid.UUID, Result] = {}
    for result in results:
        # A transaction with two different states is not decided.
        if result.transaction_id in found and STATE_OF[found[result.transaction_id].state] != STATE_OF[result.state]:
            found[result.transaction_id] = Result(result.transaction_id, "UNKNOWN", "two different states")
        else:
            found[result.transaction_id] = result
    return found


def void(answer: Answer) -> str:
    """A text for the history: why a 2xx answer decided nothing, the expected answer, and the answer's beginning."""
    wanted = WITHOUT_STATE if answer.status == 200 else OTHER_STATUS
    return f"{answer.reason.removesuffix('.')}{wanted} {kept(answer.body)}".strip()


def kept(body: bytes) -> str:
    """The beginning of an answer as readable text, for the history."""
    return legible(body[:MAX_KEPT_ANSWER].decode("utf-8", "replace"))
