"""Requests that listen: which of them a message wakes, whose read joins a batch, and what is known to be empty."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from store.messages import MessageRow
from store.notices.emptied import MOST_EMPTIED, Emptied
from store.notices.listeners import Joined, Listeners, Waiter, join
from store.notices.peers import ALONE_SECONDS, Peers

OWN, RETRIES, WRITER = 1, 2, "the writer"


@dataclass
class Reading:
    """The read of one receive."""

    most: int = 32
    may_join: bool = True
    taken: int = 0
    is_all: bool = False
    joined: Joined | None = None
    settled: Callable[[Exception | None], None] | None = None

    def see(self, stored: Iterable[MessageRow]) -> None: ...

    def is_written(self, taken: int) -> None:
        """The batch is answered: the read took so many messages, and left none."""
        self.taken, self.is_all = taken, taken < self.most
        assert self.joined is not None
        self.joined(None)


class Topics:
    """A topic and the retries of a group."""

    def __init__(self, hears_all: bool = True) -> None:
        peers = Peers()
        if hears_all:
            peers.begin()
            now = time.monotonic()
            peers.listen(now - 2 * ALONE_SECONDS)
            for seconds in range(int(2 * ALONE_SECONDS), -1, -1):
                peers.hear_itself(now - seconds)
        self.emptied = Emptied(peers)
        self.both = {OWN: Listeners(), RETRIES: Listeners()}

    def waiter(self) -> Waiter:
        for listeners in self.both.values():
            listeners.reading += 1
        return Waiter(self.both, "group", self.emptied, changes=0)

    async def blocked(self, read: Reading) -> asyncio.Task[None]:
        """A request that waits."""
        task = asyncio.create_task(self.waiter().wait(5, None, read))
        await asyncio.sleep(0)
        return task

    def publish(self, topic: int, messages: int, writer: object = None) -> None:
        self.emptied.published(topic)
        self.both[topic].wake(messages, writer)


async def test_the_longest_blocked_request_joins_and_its_messages_wake_no_other() -> None:
    topics, reads = Topics(), [Reading(), Reading()]
    first, second = [await topics.blocked(read) for read in reads]

    join(topics.both[OWN], 0, WRITER)
    assert [read.joined is not None for read in reads] == [True, False]
    topics.publish(OWN, 3, WRITER)
    reads[0].is_written(taken=3)
    await first

    assert not second.done()
    assert await ended(second, topics)


async def test_what_a_joined_read_leaves_wakes_others() -> None:
    topics, reads = Topics(), [Reading(most=2), Reading(), Reading()]
    tasks = [await topics.blocked(read) for read in reads]

    join(topics.both[OWN], 0, WRITER)
    topics.publish(OWN, 3, WRITER)
    await tasks[1]
    assert not tasks[2].done()

    reads[0].is_written(taken=1)  # the second message did not fit into its page
    await asyncio.gather(*tasks)


async def test_a_joined_read_that_was_left_out_reads_again_by_itself() -> None:
    topics, reads = Topics(), [Reading(), Reading()]
    first, second = [await topics.blocked(read) for read in reads]

    join(topics.both[OWN], 0, WRITER)
    topics.publish(OWN, 1, WRITER)
    reads[0].is_written(taken=0)
    await first

    assert await ended(second, topics)


async def test_a_request_that_its_retries_have_woken_joins_no_batch_of_its_topic() -> None:
    """It reads by itself: what a joined read were handed meanwhile would be lost."""
    topics, read = Topics(), Reading()
    task = await topics.blocked(read)

    topics.publish(RETRIES, 1)

    assert join(topics.both[OWN], 0, WRITER) is None
    await task


async def test_a_request_joins_no_batch_behind_a_change_of_the_configuration() -> None:
    topics, read = Topics(), Reading()
    task = await topics.blocked(read)

    assert join(topics.both[OWN], 1, WRITER) is None
    assert await ended(task, topics)


async def test_a_read_that_took_all_leaves_nothing_known_until_something_is_published() -> None:
    topics = Topics()
    waiter = topics.waiter()
    assert waiter.empty_seconds is None

    waiter.found_all()
    assert waiter.empty_seconds is not None

    topics.publish(RETRIES, 1)
    assert waiter.empty_seconds is None


async def test_what_is_published_while_a_read_is_under_way_is_not_taken_for_read() -> None:
    topics = Topics()
    waiter = topics.waiter()
    topics.publish(OWN, 1)

    waiter.found_all()

    assert waiter.empty_seconds is None


async def test_a_joined_read_knows_what_its_writer_published_and_not_what_others_did() -> None:
    known = []
    for publisher in (WRITER, "another process"):
        topics, read = Topics(), Reading()
        task = await topics.blocked(read)
        join(topics.both[OWN], 0, WRITER)
        topics.publish(OWN, 1, publisher)
        read.is_written(taken=1)
        await task
        known.append(topics.waiter().empty_seconds is not None)

    assert known == [True, False]


async def test_a_process_that_may_miss_notices_takes_nothing_for_empty() -> None:
    waiter = Topics(hears_all=False).waiter()

    waiter.found_all()

    assert waiter.empty_seconds is None


async def ended(task: asyncio.Task[None], topics: Topics) -> bool:
    """Whether it waited until now: a message wakes it."""
    waited = not task.done()
    topics.publish(OWN, 1)
    await task
    return waited


def test_readers_that_found_nothing_are_counted_and_not_their_topics_alone() -> None:
    emptied = Topics().emptied
    for reader in range(MOST_EMPTIED + 2):
        emptied.note([OWN], reader)

    assert emptied.seconds([OWN], 0) is None, "all are forgotten beyond the bound"
    assert emptied.seconds([OWN], MOST_EMPTIED + 1) is not None
