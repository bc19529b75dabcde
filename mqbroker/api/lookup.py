"""The look-up of messages: by id, by key, by topic and time, and the trace of one."""

from typing import Any

from monitoring import trace as monitoring_trace
from mqbroker.access import Caller
from mqbroker.api import cursors, requests
from mqbroker.api.answers import Answer, answer
from mqbroker.api.requests import DataRequest, number
from store import lookup, messages, topics
from store.errors import MessageIllegal
from store.lookup import Found, Place


async def message(request: DataRequest, message_id: str) -> Answer:
    """GET /v1/messages/{message_id}."""
    require_read(request.caller)
    found = await lookup.by_id(requests.message_id(message_id))
    names = await topics.names({found.message.topic_id})
    require_read(request.caller, names[found.message.topic_id])
    return answer(entry(found, names))


async def messages_of_topic(request: DataRequest) -> Answer:
    """GET /v1/messages."""
    given = request.query_with_blanks
    query = {name: values[-1] for name, values in given.items()}
    name, key = query.get("topic", ""), query.get("key")
    require_read(request.caller, name)
    since, until = requests.time("from", query.get("from")), requests.time("to", query.get("to"))
    if since is not None and until is not None and since >= until:
        raise MessageIllegal(f"from {query['from']} is not before to {query['to']}.")
    count = number(given, "limit", cursors.DEFAULT_LIMIT)
    if not 1 <= count <= cursors.MAX_LIMIT:
        raise MessageIllegal(f"limit {count} is not between 1 and {cursors.MAX_LIMIT}.")
    after = cursors.decode(query.get("cursor"), Place)
    topic = await lookup.topic_of(name)
    if key is None:
        page = await lookup.by_time(topic, since, until, after, count)
    else:
        page = await lookup.by_key(topic, key, since, until, after, count)
    names = await topics.names({found.message.topic_id for found in page.found})
    following = None if page.after is None else cursors.encode(page.after)
    return answer({"results": [entry(found, names) for found in page.found], "next": following})


async def trace(request: DataRequest, message_id: str) -> Answer:
    """GET /v1/messages/{message_id}/trace."""
    require_read(request.caller)
    asked = requests.message_id(message_id)
    copies = await lookup.copies(asked)
    names = await topics.names({copies[0].topic_id})
    require_read(request.caller, names[copies[0].topic_id])
    return answer(await monitoring_trace.of(asked, copies))


def require_read(caller: Caller, topic: str | None = None) -> None:
    """Raises NoPermission unless the key may manage, or produce to the topic; without one: to any."""
    if caller.may_manage:
        return
    if topic is None:
        caller.require_any("produce")
    else:
        caller.require("produce", topic)


def entry(found: Found, names: dict[int, str]) -> dict[str, Any]:
    """A message that was looked up, as the API gives it out; its queue_offset is null while it is not visible."""
    message = messages.document(found.message, names[found.message.topic_id])
    message["reconsume_times"] = found.reconsume_times
    return {"message": message, "queue_id": found.queue_id, "queue_offset": found.queue_offset}
