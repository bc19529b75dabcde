"""Chooses the queue of a message: the named queue, by the sharding key, or the next in turn."""

from collections.abc import Callable, Sequence
from itertools import count
from zlib import crc32

from store import errors
from store.messages import Message
from store.naming import topics
from store.naming.topics import TopicFacts
from store.process import runtime


class Turns:
    """Chooses queues for messages that name no queue, so that a process sends equally many to each queue."""

    def __init__(self) -> None:
        self.next: Callable[[], int] = count().__next__


def common_queue(given: Sequence[Message], topic: TopicFacts) -> int:
    """The queue that messages of a batch name, or else one queue for all. Raises BatchIllegal, QueueIllegal."""
    named = {
        queue_of(message, topic)
        for message in given
        if message.queue_id is not None or message.sharding_key is not None
    }
    if len(named) > 1:
        raise errors.BatchIllegal(
            f"The messages name the queues {sorted(named)}: all messages of a batch must go to one queue."
        )
    return named.pop() if named else queue_of(given[0], topic)


def queue_of(message: Message, topic: TopicFacts) -> int:
    """The queue of a message: the named queue, by the sharding key, or the next in turn. Raises QueueIllegal."""
    if message.queue_id is not None:
        topics.require_queue(topic.name, message.queue_id, topic.queues)
        return message.queue_id
    if message.sharding_key is not None:
        return crc32(message.sharding_key.encode()) % topic.queues
    return runtime.control(Turns).next() % topic.queues
