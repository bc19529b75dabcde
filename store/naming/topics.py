"""Topics by name, cached for seconds by each process."""

from urllib.parse import quote

from django.conf import settings

from store import errors
from store.cells import cells, copies
from store.db import connections
from store.db.statements import Statement
from store.db.ttl_cache import CONFIGURATION_SECONDS, TtlCache
from store.models import Topic
from store.naming import names, namespaces
from store.naming.names import is_name, rule
from store.naming.permissions import TopicFacts as TopicFacts
from store.naming.permissions import require_readable as require_readable
from store.naming.permissions import require_writable
from store.process import runtime

FIND_TOPICS = Statement(__file__, "find_topics", TopicFacts)
CREATE_TOPIC = Statement(__file__, "create_topic")

RETRY_PREFIX = names.RETRY_PREFIX
DEAD_LETTER_PREFIX = names.DEAD_LETTER_PREFIX
SCHEDULE = names.SCHEDULE
DISCARDED = names.DISCARDED
# Entries in these topics do not make a message visible to consumers of the topic that it was sent to.
HIDDEN = (SCHEDULE, DISCARDED)
# RocketMQ's topics that the broker never creates: their messages are rows of tables here, and no consumer reads them.
KEPT_ELSEWHERE = {
    name: f"it is RocketMQ's name for {what}, a view of the rows that are kept; "
    f"GET /v1/topics/{name}/queues/0/messages and GET /v1/messages?topic={name} read it, with the scope manage"
    for name, what in ((names.HALF_MESSAGES, "half messages"), (names.ENDS, "ends"))
}
SYSTEM = names.SYSTEM


class Topics:
    """The topics that one process has cached."""

    def __init__(self) -> None:
        self.by_name: TtlCache[str, TopicFacts] = TtlCache(CONFIGURATION_SECONDS)
        # Thousands of requests may use a new topic at once: one request creates the topic, the others wait for the
        # result.
        self.making: TtlCache[str, TopicFacts] = TtlCache(0)

    def forget_all(self) -> None:
        """Drops the cached topics, because another process may have changed them."""
        self.by_name.forget_all()


def is_system(name: str) -> bool:
    """Whether the topic is the broker's own: producers cannot send to it."""
    return name in SYSTEM or name.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))


def group_of(topic_name: str, prefix: str) -> str | None:
    """The group whose retries or dead letters the topic holds, by `prefix`; None for another topic."""
    return topic_name.removeprefix(prefix) if topic_name.startswith(prefix) else None


def validate_name(name: str) -> None:
    """Raises TopicIllegal unless a topic may have this name."""
    if not name:
        raise errors.TopicIllegal(f"topic is missing: give {rule()}.")
    if not is_name(name):
        raise errors.TopicIllegal(f"topic {name[:140]!r} is not a valid topic name: {rule()}.")


def absent(name: str) -> errors.TopicNotExist:
    """The refusal of a request that names a topic that does not exist."""
    made = "the broker makes it with its first message" if is_system(name) else f"PUT /v1/topics/{quote(name)} makes it"
    return errors.TopicNotExist(f"There is no topic {name}: {KEPT_ELSEWHERE.get(name, made)}.")


def validate_sending(name: str) -> None:
    """Raises TopicIllegal unless a topic may have this name, TopicForbidden for the broker's own topics."""
    validate_name(name)
    if is_system(name):
        raise errors.TopicForbidden(f"The topic {name} belongs to the broker: send to a topic of your own.")


async def for_sending(name: str, queue_id: int | None = None, beside: str | None = None) -> TopicFacts:
    """The topic of a message. With AUTO_CREATE_TOPICS a missing topic is created, unless a new topic would not have the
    queue `queue_id`.

    A new topic gets the cell and the home of the topic `beside`, or else lies in the open cell.

    Raises TopicIllegal, TopicForbidden (the broker's own, or not writable), SendsForbidden, TopicNotExist or
    QueueIllegal.
    """
    topic = await find_for_sending(name)
    if topic is None:
        if queue_id is not None:
            require_queue(name, queue_id, settings.DEFAULT_QUEUES)
        topic = await _create(name, beside)
        require_writable(topic)
    return topic


async def require_possible(name: str, queue_id: int | None) -> None:
    """Raises the errors of `for_sending`, and QueueIllegal for a missing queue of the topic. Creates no topic."""
    topic = await find_for_sending(name)
    if queue_id is not None:
        require_queue(name, queue_id, settings.DEFAULT_QUEUES if topic is None else topic.queues)


async def find_for_sending(name: str) -> TopicFacts | None:
    """The topic of a message; None if `for_sending` will create it.

    Raises TopicIllegal, TopicForbidden, SendsForbidden or TopicNotExist.
    """
    validate_sending(name)
    topic = await _find(name)
    if topic is None and not settings.AUTO_CREATE_TOPICS:
        raise absent(name)
    if topic is not None:
        require_writable(topic)
    return topic


async def look_up(name: str) -> None:
    """Looks up a topic, so that `known_for_sending` finds it if it exists."""
    if is_name(name):
        await _find(name)


def known_for_sending(name: str) -> TopicFacts | None:
    """The topic of a message if it is in this process's cache; else None: then call `for_sending`."""
    topic = runtime.control(Topics).by_name.known(name)
    if topic is None or "w" not in topic.permission or is_system(name):
        return None
    return topic if topic.sends_from is None or not topic.forbids_sends else None


def known(name: str) -> TopicFacts | None:
    """The topic of this name in the cache of this process, whatever its permission; else None."""
    return runtime.control(Topics).by_name.known(name)


async def existing(name: str) -> TopicFacts:
    """The topic of this name, whatever its permission. Raises TopicIllegal or TopicNotExist."""
    validate_name(name)
    topic = await _find(name)
    if topic is None:
        raise absent(name)
    return topic


async def for_reading(name: str) -> TopicFacts:
    """The topic that a consumer reads.

    Raises TopicIllegal, TopicForbidden (not readable) or TopicNotExist.
    """
    topic = await existing(name)
    require_readable(name, topic.permission)
    return topic


async def for_consuming(name: str) -> TopicFacts:
    """The topic that a consumer group reads. With AUTO_CREATE_TOPICS a missing topic is created, as for a send.

    Raises TopicIllegal, TopicForbidden (not readable) or TopicNotExist. A topic of the broker's own is not created.
    """
    validate_name(name)
    if settings.AUTO_CREATE_TOPICS and not is_system(name) and await _find(name) is None:
        await _create(name)
    return await for_reading(name)


def require_queue(name: str, queue_id: int, queues: int) -> None:
    """Raises QueueIllegal unless the topic has this queue."""
    if not 0 <= queue_id < queues:
        raise errors.QueueIllegal(f"The topic {name} has no queue {queue_id}: its queues are 0 to {queues - 1}.")


async def own(name: str, queues: int, beside: str | None = None) -> TopicFacts:
    """A topic of the broker's own with at least `queues` queues: created if missing, grown if it has fewer.

    Its permission is `r`, because callers may not send to it; an earlier version created some with `rw`. Raises
    TopicNotExist if another process deletes the topic at this moment.
    """
    topic = await _find(name)
    permission = "r" if is_system(name) else "rw"
    if topic is None or topic.queues < queues or (permission == "r" and topic.permission != "r"):
        parameters = {"name": name, "queues": queues, "permission": permission, "beside": beside}
        await copies.first_use(CREATE_TOPIC, parameters, Topic, name=name)
        forget(name)
        topic = await _find(name)
    if topic is None:
        # Another process has deleted the topic at this moment.
        raise absent(name)
    return topic


def forget(name: str) -> None:
    """Drops a topic from the cache, after this process has changed it."""
    runtime.control(Topics).by_name.forget(name)


async def _find(name: str) -> TopicFacts | None:
    async def look_up() -> TopicFacts | None:
        rows = await connections.read_control(FIND_TOPICS, {"names": [name], "ids": []})
        if rows and not runtime.serves(rows[0].cell_id):
            # The cell was added after this process last read the list of cells.
            await cells.learn()
        return rows[0] if rows else None

    by_name = runtime.control(Topics).by_name
    return await by_name.get(name, lambda: cells.or_last(by_name, name, look_up))


async def _create(name: str, beside: str | None = None) -> TopicFacts:
    if not settings.AUTO_CREATE_TOPICS:
        raise absent(name)
    await namespaces.require_room(name)
    topic = await runtime.control(Topics).making.get(name, lambda: own(name, settings.DEFAULT_QUEUES, beside))
    assert topic is not None
    return topic
