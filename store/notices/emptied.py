"""Whether a topic is known to be empty for a reader, because the reader's last request in this process found no more
messages.
"""

import time
from collections.abc import Collection, Hashable

from store.notices.peers import Peers

# The most pairs of reader and topic. When there are more, all pairs are dropped, and requests read the database.
MOST_EMPTIED = 50_000


class Emptied:
    """The time when each reader of a topic last found no more messages; the time is dropped when a message is published
    there.

    Only used while this process hears of all messages that other processes publish.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._since: dict[int, dict[Hashable, float]] = {}
        self._count = 0

    def seconds(self, topic_ids: Collection[int], reader: Hashable) -> float | None:
        """For how many seconds these topics are known to have no message for the reader; None if unknown."""
        now = time.monotonic()
        since = [at for topic in topic_ids if (at := self._since.get(topic, {}).get(reader)) is not None]
        return now - min(since) if len(since) == len(topic_ids) and self._peers.hears_all(now) else None

    def note(self, topic_ids: Collection[int], reader: Hashable) -> None:
        """Notes that the reader has found no more messages."""
        if self._count > MOST_EMPTIED:
            self._since.clear()
            self._count = 0
        now = time.monotonic()
        for topic_id in topic_ids:
            readers = self._since.setdefault(topic_id, {})
            self._count += reader not in readers
            readers[reader] = now

    def published(self, topic_id: int) -> None:
        """Drops the topic, because a message has become visible in it."""
        self._count -= len(self._since.pop(topic_id, ()))
