"""The topics and queues to which the options topic, topicPattern, assign and namespace limit a read or a stream."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from psycopg.sql import Literal

from analytics.closed import ClosedRange, ClosedSegment
from analytics.connections import Connection, read
from analytics.errors import OptionRefused
from analytics.rows import NamedTopic
from store.db.statements import Statement

FIND_TOPICS = Statement(__file__, "find_topics", NamedTopic)
Queues = Mapping[str, Collection[int]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice of rows; without any field all rows.

    `names` and the names in `queues` are whole names of topics, `pattern` matches whole names.
    """

    names: Collection[str] = ()
    pattern: str = ""
    queues: Queues = field(default_factory=dict)
    namespace: str = ""

    def applied(self, reader: Connection, ranges: ClosedRange, columns: Collection[str]) -> tuple[ClosedRange, str]:
        """The range with the chosen queues only, and the condition for the rows of a table with these columns.

        Raises OptionRefused for a topic that does not exist.
        """
        if self == Choice():
            return ranges, "true"
        if "topic" not in columns:
            return ranges, f"namespace = {Literal(self.namespace).as_string(None)}"
        topics = self._topics(reader)
        segments = [self._within(segment, topics) for segment in ranges.segments]
        # Topics are compared by id: PostgreSQL need not join the name of a topic to reject a row.
        return replace(ranges, segments=segments), f"topic_id = ANY({Literal(list(topics)).as_string(None)}::int[])"

    def _topics(self, reader: Connection) -> Mapping[int, str]:
        """The chosen topics by id."""
        found = read(reader, FIND_TOPICS)
        for name in {*self.names, *self.queues} - {topic.name for topic in found}:
            raise OptionRefused(f"There is no topic {name}: give names of topics as the column topic has them.")
        return {topic.id: topic.name for topic in found if self._holds(topic)}

    def _holds(self, topic: NamedTopic) -> bool:
        named = {*self.names, *self.queues}
        return (
            (not named or topic.name in named)
            and (not self.pattern or re.fullmatch(self.pattern, topic.name) is not None)
            and (not self.namespace or topic.namespace == self.namespace)
        )

    def _within(self, segment: ClosedSegment, topics: Mapping[int, str]) -> ClosedSegment:
        queues = [
            queue
            for queue in segment.entries
            if queue.topic_id in topics and (not self.queues or queue.queue_id in self.queues[topics[queue.topic_id]])
        ]
        return replace(segment, entries=queues)
