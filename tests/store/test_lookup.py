"""The look-up of messages that outlive their segment, and of those that do not."""

from typing import Any

import pytest

from scheduling import reappend, trace
from store.errors import MessageNotFound
from store.process.answer_budget import Hold
from store.reading import lookup, search
from store.reading.search import Listed
from tests.store.keeper import Keeper


async def _by_key(topic: str, key: str, count: int = 100) -> Listed:
    return await search.by_key(await search.topic_of(topic), key, None, None, None, count, Hold(), hidden_too=True)


async def _by_time(topic: str) -> Listed:
    return await search.by_time(await search.topic_of(topic), None, None, None, 100, Hold())


def ids(listed: Listed) -> list[Any]:
    return [found.message.message_id for found in listed[0]]


def test_a_message_that_was_appended_again_is_found_once_at_its_newest_place(keeper: Keeper, orders: str) -> None:
    sent = keeper.send(orders, "paid", delay_seconds=86400, keys=["o-1"])
    first = keeper.do(lookup.by_id(sent["message_id"], Hold())).message
    keeper.roll()
    keeper.roll()
    keeper.drop_old()
    keeper.do(reappend.run())
    assert keeper.segments_of(sent["message_id"]) == [1, 3]

    again = keeper.do(lookup.by_id(sent["message_id"], Hold())).message
    by_key = keeper.do(_by_key(orders, "o-1"))
    way = keeper.do(trace.of([copy.log_offset for copy in keeper.do(lookup.copies(sent["message_id"]))]))

    assert (again.segment_id, again.stored_at, again.body) == (3, first.stored_at, first.body)
    assert ids(by_key) == [sent["message_id"]]
    assert [(wait.level, wait.deliver_at) for wait in way.waits] == [(None, sent["deliver_at"])]


def test_a_message_is_not_found_once_its_segment_is_gone(keeper: Keeper, orders: str) -> None:
    old = keeper.send(orders, "old", keys=["c-1"])
    keeper.roll()
    new = keeper.send(orders, "new", keys=["c-1"])
    keeper.roll()
    keeper.drop_old()
    assert keeper.states()[1] == "dropped"

    with pytest.raises(MessageNotFound) as raised:
        keeper.do(lookup.by_id(old["message_id"], Hold()))

    assert (
        raised.value.detail == f"There is no message {old['message_id']}: it was never stored, or retention has "
        "deleted it."
    )
    assert ids(keeper.do(_by_key(orders, "c-1"))) == [new["message_id"]]


def test_a_list_by_time_goes_across_segments(keeper: Keeper, orders: str) -> None:
    sent = []
    for number in range(3):
        sent.append(keeper.send(orders, str(number), queue_id=0))
        keeper.roll()

    assert ids(keeper.do(_by_time(orders))) == [one["message_id"] for one in reversed(sent)]


def test_a_list_by_time_begins_at_what_retention_has_left(keeper: Keeper, orders: str) -> None:
    keeper.send(orders, "old", queue_id=0)
    keeper.roll()
    keeper.drop_old()
    new = keeper.send(orders, "new", queue_id=0)

    assert ids(keeper.do(_by_time(orders))) == [new["message_id"]]
    assert new["queue_offset"] == 1


def test_every_partition_gets_the_index_of_keys(keeper: Keeper) -> None:
    keeper.roll()

    indexes = keeper.sql(
        "SELECT tablename FROM pg_indexes WHERE indexdef LIKE '%%gin (keys)%%fastupdate=off%%' ORDER BY tablename"
    )

    assert [index.tablename for index in indexes] == ["commit_log", "commit_log_1", "commit_log_2"]
