"""The look-up of messages: by id, by key, by topic and time, and the trace of one."""

import re
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import msgspec
from django.http import HttpResponse

from monitoring import trace as monitoring_trace
from mqbroker.access import Caller
from mqbroker.api.asgi_handler import DataRequest, answer
from mqbroker.api.consumers import number
from mqbroker.api.control import lists
from store import lookup, messages, topics
from store.errors import MessageIllegal, MessageNotFound
from store.lookup import Found, Place

# The + of an offset that was not escaped arrives as a blank.
BLANK_OFFSET = re.compile(r" (\d\d:\d\d)$")


async def message(request: DataRequest, message_id: str) -> HttpResponse:
    """GET /v1/messages/{message_id}."""
    judge_caller(request.caller)
    found = await lookup.by_id(message_of(message_id))
    names = await topics.names({found.message.topic_id})
    judge_caller(request.caller, names[found.message.topic_id])
    return answer(entry(found, names))


async def messages_of_topic(request: DataRequest) -> HttpResponse:
    """GET /v1/messages."""
    given = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = {name: values[-1] for name, values in given.items()}
    name, key = query.get("topic", ""), query.get("key")
    judge_caller(request.caller, name)
    since, until = time_of("from", query.get("from")), time_of("to", query.get("to"))
    if since is not None and until is not None and since >= until:
        raise MessageIllegal(f"from {query['from']} is not before to {query['to']}.")
    count = number(given, "limit", lists.DEFAULT_LIMIT)
    if not 1 <= count <= lists.MAX_LIMIT:
        raise MessageIllegal(f"limit {count} is not between 1 and {lists.MAX_LIMIT}.")
    after = lists.place(query.get("cursor"), Place)
    topic = await lookup.topic_of(name)
    if key is None:
        page = await lookup.by_time(topic, since, until, after, count)
    else:
        page = await lookup.by_key(topic, key, since, until, after, count)
    names = await topics.names({found.message.topic_id for found in page.found})
    following = None if page.after is None else lists.cursor(page.after)
    return answer({"results": [entry(found, names) for found in page.found], "next": following})


async def trace(request: DataRequest, message_id: str) -> HttpResponse:
    """GET /v1/messages/{message_id}/trace."""
    judge_caller(request.caller)
    asked = message_of(message_id)
    copies = await lookup.copies(asked)
    names = await topics.names({copies[0].topic_id})
    judge_caller(request.caller, names[copies[0].topic_id])
    return answer(await monitoring_trace.of(asked, copies))


def judge_caller(caller: Caller, topic: str | None = None) -> None:
    """Raises NoPermission unless the key may manage, or produce to the topic; without one: to any."""
    if "manage" in caller.scopes:
        return
    if topic is None:
        caller.require_any("produce")
    else:
        caller.require("produce", topic)


def message_of(given: str) -> uuid.UUID:
    """The message that a path names.

    Raises MessageNotFound for what is no id at all: none such exists.
    """
    try:
        return uuid.UUID(given)
    except ValueError as problem:
        raise MessageNotFound(f"There is no message {given[:64]}: a message_id is a UUID.") from problem


def time_of(name: str, given: str | None) -> datetime | None:
    """A time of the query string.

    Raises MessageIllegal when it is none.
    """
    if given is None:
        return None
    try:
        # PostgreSQL is given UTC: a time that leaves the year 9999 by its offset is none.
        return msgspec.convert(BLANK_OFFSET.sub(r"+\1", given), messages.Time).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError) as problem:
        raise MessageIllegal(f"{name} {given[:60]!r} is no time: give one such as 2026-01-31T12:00:00Z.") from problem


def entry(found: Found, names: dict[int, str]) -> dict[str, Any]:
    """A message that was looked up, as the API gives it out; its queue_offset is null while it is not visible."""
    message = messages.given_out(found.message, names[found.message.topic_id])
    message["reconsume_times"] = found.reconsume_times
    return {"message": message, "queue_id": found.queue_id, "queue_offset": found.queue_offset}
