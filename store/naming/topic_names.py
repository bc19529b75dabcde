"""The names of topics by their ids. Each process caches the names that it has looked up."""

from store.db import connections
from store.naming.topics import FIND_TOPICS
from store.process import runtime


class TopicNames(dict[int, str]):
    """The cached names, a part of the runtime. They are never dropped, because a topic never changes its name."""


async def of_ids(ids: set[int]) -> dict[int, str]:
    """The names of topics by their ids."""
    known = runtime.control(TopicNames)
    missing = ids.difference(known)
    if missing:
        for row in await connections.read_control(FIND_TOPICS, {"names": [], "ids": list(missing)}):
            known[row.id] = row.name
    return {id_: known.get(id_) or deleted(id_) for id_ in ids}


def deleted(topic_id: int) -> str:
    """The text shown for the name of a deleted topic, whose messages still have its id."""
    return f"(deleted topic {topic_id})"
