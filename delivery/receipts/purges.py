"""Statements on deliveries, retry queues and dead letters of topics that leave a database."""

from typing import NamedTuple

from store.db.statements import Statement


class QueueOfRetries(NamedTuple):
    """A queue of a group's retry topic."""

    topic_id: int
    queue_id: int


COUNT_RECEIPTS_OF = Statement(__file__, "count_receipts_of", one=int)
FIND_RETRY_QUEUES = Statement(__file__, "find_retry_queues", QueueOfRetries)
PURGE_RECEIPTS = Statement(__file__, "purge_receipts", one=int)
MARK_LEFT_LETTERS = Statement(__file__, "mark_left_letters", one=int)
