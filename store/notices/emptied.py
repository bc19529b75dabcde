"""What the requests of this process know to be empty: the topics in which their readers have found nothing more."""

import time
from collections.abc import Collection, Hashable

from store.notices.peers import Peers

# Beyond this number of readers, each counted for each of its topics, all is forgotten: their requests read.
MOST_EMPTIED = 50_000


class Emptied:
    """When each reader of a topic last found nothing more there; forgotten as soon as something is published.

    It is believed only while this process hears of all that others publish.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._since: dict[int, dict[Hashable, float]] = {}
        self._count = 0

    def seconds(self, topic_ids: Collection[int], reader: Hashable) -> float | None:
        """Since when the reader has found nothing in these topics, in seconds; None where it is not known."""
        now = time.monotonic()
        since = [at for topic in topic_ids if (at := self._since.get(topic, {}).get(reader)) is not None]
        return now - min(since) if len(since) == len(topic_ids) and self._peers.hears_all(now) else None

    def note(self, topic_ids: Collection[int], reader: Hashable) -> None:
        """The reader has found nothing more."""
        if self._count > MOST_EMPTIED:
            self._since.clear()
            self._count = 0
        now = time.monotonic()
        for topic_id in topic_ids:
            readers = self._since.setdefault(topic_id, {})
            self._count += reader not in readers
            readers[reader] = now

    def published(self, topic_id: int) -> None:
        """Something became visible in the topic."""
        self._count -= len(self._since.pop(topic_id, ()))
