"""The look-up of messages: by id, by key, by topic and time, and the trace of one."""

import uuid
from collections.abc import Mapping
from datetime import datetime

import msgspec

from access.callers import Caller
from console.monitoring import trace as monitoring_trace
from delivery.receive import discarded
from mqbroker.api import answers, requests
from mqbroker.api.answers import Answer, answer
from mqbroker.api.requests import DataRequest, number
from store import messages
from store.errors import MessageIllegal, require_between
from store.messages import StoredMessage
from store.naming import topic_names, topics
from store.process import pacing, runtime
from store.reading import cursors, holders, lookup, search
from store.reading.lookup import Found
from store.reading.search import BEGINNING, END, Cursor
from transactions.reads import internal_topics


class FoundMessage(msgspec.Struct):
    """A message found by a look-up.

    `queue_offset` is null while the message is not visible: undecided, delayed, or never.
    """

    message: StoredMessage
    queue_id: int
    queue_offset: int | None


class FoundMessages(msgspec.Struct):
    """A page of messages, the newest first; `next` is the cursor of the next page, null on the last page.

    A page may have fewer than `limit` messages, even none, although more follow.
    """

    results: list[FoundMessage]
    next: str | None


async def message(request: DataRequest, message_id: str) -> Answer:
    """GET /v1/messages/{message_id}."""
    _require_any(request.caller)
    found = await lookup.by_id(requests.message_id(message_id), request.hold)
    names = await topic_names.of_ids({found.message.topic_id})
    wanted = found.message.message_id
    is_visible = found.queue_offset is not None or await lookup.is_visible(wanted)
    _require_sight(request.caller, wanted, names[found.message.topic_id], is_visible=is_visible)
    # Encoding a large body takes milliseconds, so the bodies of many callers are encoded with pauses in between.
    async with pacing.step():
        return answer(_found(found, names, {}))


async def messages_of_topic(request: DataRequest) -> Answer:
    """GET /v1/messages."""
    given = request.query_with_blanks("topic", "key", "from", "to", "limit", "cursor", "cell")
    query = {name: values[-1] for name, values in given.items()}
    name, key = query.get("topic", ""), query.get("key")
    is_internal = name in internal_topics.NAMES
    request.caller.require_manage() if is_internal else request.caller.require("read", name)
    if name in topics.HIDDEN:
        # The entries of the schedule topic are messages of any topic, which no consumer can see.
        request.caller.require_manage()
    since, until = requests.time("from", query.get("from")), requests.time("to", query.get("to"))
    if since is not None and until is not None and since >= until:
        raise MessageIllegal(f"The time from {query['from']} is not before the time to {query['to']}.")
    count = number(given, "limit", cursors.DEFAULT_LIMIT)
    require_between("limit", count, 1, cursors.MAX_LIMIT)
    after = cursors.decode(query.get("cursor"), Cursor)
    if is_internal:
        return await _internal(request, name, key, (since or BEGINNING, until or END), after, count, query.get("cell"))
    topic = await search.topic_of(name)
    with runtime.in_cell(holders.of_queues(topic, query.get("cell") or None)):
        if key is None:
            page, last = await search.by_time(topic, since, until, after, count, request.hold)
        else:
            hidden_too = request.caller.may_see(name, is_visible=False)
            page, last = await search.by_key(
                topic, key, since, until, after, count, request.hold, hidden_too=hidden_too
            )
    names = await topic_names.of_ids({found.message.topic_id for found in page})
    producers = await discarded.producers(found.message for found in page if found.counted.check_times is not None)
    following = None if last is None else cursors.encode(last)
    results = (_found(found, names, producers) for found in page)
    return answers.page(request.hold, results, {"next": following}, "results")


async def _internal(
    request: DataRequest,
    name: str,
    key: str | None,
    within: tuple[datetime, datetime],
    after: Cursor | None,
    count: int,
    cell: str | None,
) -> Answer:
    """A page of one of RocketMQ's two topics of transactions. Both topics are views of other tables."""
    if key is not None and name == internal_topics.OP:
        raise MessageIllegal(
            f"The topic {name} has no keys: look the key up in {internal_topics.HALF}, or in another topic."
        )
    with runtime.in_cell(internal_topics.cell_of(name, cell or None)):
        below = (after or Cursor()).offset
        if key is None:
            view = await internal_topics.back(name, below, *within, count, request.hold)
        else:
            view = await internal_topics.by_key(key, below, *within, count, request.hold)
    following = None if view.go_on_at is None else cursors.encode(Cursor(offset=view.go_on_at))
    results = (FoundMessage(one.message, 0, one.offset) for one in view.placed)
    return answers.page(request.hold, results, {"next": following}, "results")


async def trace(request: DataRequest, message_id: str) -> Answer:
    """GET /v1/messages/{message_id}/trace."""
    _require_any(request.caller)
    wanted = requests.message_id(message_id)
    copies = await lookup.copies(wanted)
    names = await topic_names.of_ids({copies[0].topic_id})
    is_visible = await lookup.is_visible(wanted)
    _require_sight(request.caller, wanted, names[copies[0].topic_id], is_visible=is_visible)
    return answer(await monitoring_trace.of(wanted, copies))


def _require_any(caller: Caller) -> None:
    """Raises NoPermission for a key that may look up no message at all."""
    if not caller.may_manage_names():
        caller.require_any("read", "produce")


def _require_sight(caller: Caller, message_id: uuid.UUID, topic: str, *, is_visible: bool) -> None:
    """Raises MessageNotFound, as for an unknown id, if the key may not see the message."""
    if not caller.may_see(topic, is_visible=is_visible):
        raise lookup.not_found(message_id)


def _found(found: Found, names: dict[int, str], producers: Mapping[int, str]) -> FoundMessage:
    message = messages.stored(found.message, names[found.message.topic_id])
    message.reconsume_times, check_times = found.counted
    if check_times is not None:
        discarded.add_properties(message, found.message, check_times, producers)
    return FoundMessage(message, found.queue_id, found.queue_offset)
