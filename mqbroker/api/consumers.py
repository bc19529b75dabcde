"""The consumer's calls."""

from functools import partial

from access.callers import Caller
from delivery.dead_letters import letters as delivery_dead_letters
from delivery.dead_letters import redrive as delivery_redrive
from delivery.dead_letters.redrive import RedriveDeadLetters
from delivery.dead_letters.resending import Letter
from delivery.receipts import failing, settling
from delivery.receipts.given import require_count
from delivery.receipts.settling import Ack
from delivery.receive import offsets as delivery_offsets
from delivery.receive import positions, receives, returns
from delivery.receive import pull as delivery_pull
from delivery.receive.deliveries import Entry
from delivery.receive.offsets import ResetOffsets
from delivery.receive.receives import Receive
from mqbroker import errors
from mqbroker.api.answers import Answer, answer, page
from mqbroker.api.receipts import Deliveries, ExtendDeliveries, NackDeliveries, results_of
from mqbroker.api.requests import DataRequest, number
from store.commit import writer
from store.errors import Refusal
from store.naming.topics import RETRY_PREFIX, group_of
from store.notices.presence import Present
from store.process import runtime
from transactions.reads import internal_topics


async def receive(request: DataRequest, group: str) -> Answer:
    """POST /v1/consumer-groups/{group}/receive."""
    request.caller.require("consume", group)
    wanted = await request.given(Receive)
    request.caller.require("read", wanted.topic)
    acked = await _acked_before(request.caller, group, wanted.ack)

    async def require() -> None:
        (await request.caller_now()).require_receive(group, wanted.topic)

    with runtime.control(Present).asks("consumer", group, request.connection):
        received = await receives.entries(group, wanted, request.hold, request.gone, require)
    found = page(request.hold, iter(received), acked)
    found.give_back = received.given_back
    return found


async def _acked_before(caller: Caller, group: str, handles: list[str] | None) -> dict[str, object] | None:
    """Acks the deliveries that a receive names, before the receive begins. None if it names no deliveries."""
    if handles is None:
        return None
    require_count(handles, "ack")
    ack = Ack(group, handles, caller)
    await writer.run(ack)
    return {"acked": results_of(handles, ack.outcomes()).results}


async def nack(request: DataRequest, group: str) -> Answer:
    """POST /v1/consumer-groups/{group}/nack."""
    request.caller.require("consume", group)
    given = await request.given(NackDeliveries)
    outcomes = await failing.nack(group, given.receipt_handles, given.delay_seconds, given.reason)
    return answer(results_of(given.receipt_handles, outcomes))


async def give_back(request: DataRequest, group: str) -> Answer:
    """POST /v1/consumer-groups/{group}/return."""
    request.caller.require("consume", group)
    given = await request.given(Deliveries)
    outcomes = await returns.give_back(group, given.receipt_handles)
    return answer(results_of(given.receipt_handles, outcomes))


async def extend(request: DataRequest, group: str) -> Answer:
    """POST /v1/consumer-groups/{group}/extend."""
    request.caller.require("consume", group)
    given = await request.given(ExtendDeliveries)
    outcomes = await settling.extend(group, given.receipt_handles, given.invisible_seconds)
    return answer(results_of(given.receipt_handles, outcomes))


async def offsets(request: DataRequest, group: str) -> Answer:
    """GET /v1/consumer-groups/{group}/offsets."""
    require_consume(request.caller, group)
    query = request.query("topic", "cell")
    topic, cell = (query.get(name, [None])[-1] for name in ("topic", "cell"))
    if topic is not None:
        require_offsets(request.caller, topic)
    return answer(await positions.of(group, topic, partial(_may_see_offsets, request.caller, group), cell))


async def reset(request: DataRequest, group: str) -> Answer:
    """PUT /v1/consumer-groups/{group}/offsets."""
    require_consume(request.caller, group)
    wanted = await request.given(ResetOffsets)
    require_offsets(request.caller, wanted.topic)
    note = request.signed().note("offsets.reset", group, delivery_offsets.outcomes)
    return answer(await delivery_offsets.reset(group, wanted, note))


async def dead_letters(request: DataRequest, group: str) -> Answer:
    """GET /v1/dead-letters/{group}."""
    require_consume(request.caller, group)
    query = request.query("cursor", "limit")
    limit = number(query, "limit", delivery_dead_letters.DEFAULT_LISTED)
    letters = await delivery_dead_letters.listed(group, number(query, "cursor", 0), limit, request.hold)
    for topic in {letter.message.topic for letter in letters.results}:
        request.caller.require("read", topic)
    return page(request.hold, iter(letters.results), {"next": letters.next}, "results")


async def redrive(request: DataRequest, group: str) -> Answer:
    """POST /v1/dead-letters/{group}/redrive."""
    request.caller.require_manage_names(group)
    note = request.signed().note("dead_letter.redrive", group, delivery_redrive.outcomes)
    results = await delivery_redrive.redrive(group, await request.given(RedriveDeadLetters), note)
    return answer({"results": [redriven_of(one) for one in results]})


def redriven_of(result: Letter | Refusal) -> dict[str, object]:
    """The outcome for one dead letter: 200 with the topic to which it was sent, or the problem."""
    if isinstance(result, Refusal):
        return errors.document(result)
    return {"message_id": result.message_id, "status": 200, "topic": result.topic}


def require_consume(caller: Caller, group: str) -> None:
    """Raises NoPermission unless the key may consume in the group or manage: operators also read and reset offsets."""
    if not caller.may_manage_names(group):
        caller.require("consume", group)


def require_offsets(caller: Caller, topic: str) -> None:
    """Raises NoPermission unless the key may read or manage the topic: offsets and lag show how many messages the topic
    has.
    """
    if not caller.may_manage_names(topic):
        caller.require("read", topic)


def _may_see_offsets(caller: Caller, group: str, topic: str) -> bool:
    """Whether a list shows a topic: the key may read the topic, or the topic has the group's own retries."""
    return caller.may_manage_names(topic) or caller.may("read", topic) or group_of(topic, RETRY_PREFIX) == group


async def pull(request: DataRequest, topic: str, queue_id: int) -> Answer:
    """GET /v1/topics/{topic}/queues/{queue_id}/messages."""
    if topic in internal_topics.NAMES:
        return await _pull_internal(request, topic, queue_id)
    request.caller.require("read", topic)
    query = request.query("offset", "max", "wait_seconds", "cell")
    offset = number(query, "offset", 0)
    max_messages = number(query, "max", delivery_pull.DEFAULT_MESSAGES)
    wait_seconds = number(query, "wait_seconds", 0)

    async def require() -> None:
        (await request.caller_now()).require("read", topic)

    cell = query.get("cell", [None])[-1]
    at = (topic, queue_id, offset, max_messages, wait_seconds, request.hold, request.gone, require, cell)
    found = await delivery_pull.pull(*at)
    return page(request.hold, found.entries, found.bounds)


async def _pull_internal(request: DataRequest, topic: str, queue_id: int) -> Answer:
    """Pulls from RocketMQ's two topics of transactions, which are read-only views of other tables.

    Needs the scope `manage`, and does not wait.
    """
    request.caller.require_manage()
    query = request.query("offset", "max", "cell")
    max_messages = number(query, "max", delivery_pull.DEFAULT_MESSAGES)
    with runtime.in_cell(internal_topics.cell_of(topic, query.get("cell", [None])[-1])):
        offset = number(query, "offset", (await internal_topics.bounds(topic)).min_offset)
        view, ends = await internal_topics.ahead(topic, queue_id, offset, max_messages, request.hold)
    entries = (Entry(one.message, 0, one.offset) for one in view.placed)
    return page(request.hold, entries, {"next_offset": view.go_on_at, **ends._asdict()})
