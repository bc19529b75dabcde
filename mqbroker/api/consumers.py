"""The consumer's calls."""

import re
from urllib.parse import parse_qs

import msgspec
from django.http import HttpResponse

from delivery import dead_letters as delivery_dead_letters
from delivery import offsets as delivery_offsets
from delivery import pull as delivery_pull
from delivery import receipts
from delivery.dead_letters import RedriveDeadLetters
from delivery.offsets import ResetOffsets
from delivery.receive import receives
from delivery.receive.receives import Receive
from mqbroker.access import Caller
from mqbroker.api.asgi_handler import DataRequest, answer, decode, page
from mqbroker.errors import problem
from store.errors import MessageIllegal, Refusal

WHOLE = re.compile(r"-?[0-9]{1,19}")


class AckDeliveries(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Deliveries that a consumer is done with."""

    receipt_handles: list[str]


class NackDeliveries(AckDeliveries, kw_only=True, forbid_unknown_fields=True):
    """Deliveries that a consumer could not finish."""

    delay_seconds: float | None = None


class ExtendDeliveries(AckDeliveries, kw_only=True, forbid_unknown_fields=True):
    """Deliveries that a consumer needs more time for."""

    invisible_seconds: float | None = None


async def receive(request: DataRequest, group: str) -> HttpResponse:
    """POST /v1/consumer-groups/{group}/receive."""
    request.caller.require("consume", group)
    with request.watched() as gone:
        received = await receives.entries(group, decode(Receive, request.body), request.hold, gone)
        response = page(request.hold, iter(received))
        # Large bodies take their time to encode.
        await received.given_back(gone)
    return response


async def ack(request: DataRequest, group: str) -> HttpResponse:
    """POST /v1/consumer-groups/{group}/ack."""
    request.caller.require("consume", group)
    handles = decode(AckDeliveries, request.body).receipt_handles
    return answer(results_of(handles, await receipts.ack(group, handles)))


async def nack(request: DataRequest, group: str) -> HttpResponse:
    """POST /v1/consumer-groups/{group}/nack."""
    request.caller.require("consume", group)
    given = decode(NackDeliveries, request.body)
    outcomes = await receipts.nack(group, given.receipt_handles, given.delay_seconds)
    return answer(results_of(given.receipt_handles, outcomes))


async def extend(request: DataRequest, group: str) -> HttpResponse:
    """POST /v1/consumer-groups/{group}/extend."""
    request.caller.require("consume", group)
    given = decode(ExtendDeliveries, request.body)
    outcomes = await receipts.extend(group, given.receipt_handles, given.invisible_seconds)
    return answer(results_of(given.receipt_handles, outcomes))


def results_of(handles: list[str], outcomes: list[Refusal | None]) -> dict[str, object]:
    """What became of each receipt, in order."""
    return {"results": [result_of(*one) for one in zip(handles, outcomes, strict=True)]}


def result_of(handle: str, refusal: Refusal | None) -> dict[str, object]:
    """What became of one receipt: 200, or the problem that met it."""
    if refusal is None:
        return {"receipt_handle": handle, "status": 200}
    return {"receipt_handle": handle, **problem(refusal)}


async def offsets(request: DataRequest, group: str) -> HttpResponse:
    """GET /v1/consumer-groups/{group}/offsets."""
    judge_caller(request.caller, group)
    topic = query_of(request).get("topic", [None])[-1]
    return answer(await delivery_offsets.positions(group, topic))


async def reset(request: DataRequest, group: str) -> HttpResponse:
    """PUT /v1/consumer-groups/{group}/offsets."""
    judge_caller(request.caller, group)
    return answer(await delivery_offsets.reset(group, decode(ResetOffsets, request.body)))


async def dead_letters(request: DataRequest, group: str) -> HttpResponse:
    """GET /v1/dead-letters/{group}."""
    judge_caller(request.caller, group)
    query = query_of(request)
    return answer(await delivery_dead_letters.listed(group, number(query, "cursor", 0), number(query, "limit", 50)))


async def redrive(request: DataRequest, group: str) -> HttpResponse:
    """POST /v1/dead-letters/{group}/redrive."""
    request.caller.require_manage()
    results = await delivery_dead_letters.redrive(group, decode(RedriveDeadLetters, request.body))
    return answer({"results": [problem(one) if isinstance(one, Refusal) else one for one in results]})


def judge_caller(caller: Caller, group: str) -> None:
    """Raises NoPermission unless the key may consume in the group, or manage: what is read and set here is an
    operator's business, too.
    """
    if "manage" not in caller.scopes:
        caller.require("consume", group)


async def pull(request: DataRequest, topic: str, queue_id: int) -> HttpResponse:
    """GET /v1/topics/{topic}/queues/{queue_id}/messages."""
    request.caller.require_any("consume")
    query = query_of(request)
    offset = number(query, "offset", 0)
    max_messages = number(query, "max", delivery_pull.DEFAULT_MESSAGES)
    wait_seconds = number(query, "wait_seconds", 0)
    found = await delivery_pull.stretch(topic, queue_id, offset, max_messages, wait_seconds, request.hold)
    return page(request.hold, found.messages, found.bounds)


def query_of(request: DataRequest) -> dict[str, list[str]]:
    """The query string's values by name."""
    return parse_qs(request.scope["query_string"].decode("latin-1"))


def number(query: dict[str, list[str]], name: str, default: int) -> int:
    """A whole number of the query string.

    Raises MessageIllegal when it is none, or does not fit in 64 bits.
    """
    given = query.get(name, [str(default)])[-1]
    if not WHOLE.fullmatch(given) or not -(2**63) <= int(given) < 2**63:
        raise MessageIllegal(f"{name}={given[:40]!r} is no whole number of 64 bits.")
    return int(given)
