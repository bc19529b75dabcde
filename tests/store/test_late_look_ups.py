"""Look-ups whose answers are late: they found nothing, and what they looked for was made meanwhile."""

import asyncio
import uuid
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from scheduling.sending.send import Send
from store.commit import writer
from store.messages import Message
from store.naming import topics
from store.naming.topics import TopicFacts, Topics
from store.process import runtime
from tests.broker import databases
from tests.store.keeper import Keeper, fields_of, sent
from transactions import groups
from transactions.groups import ProducerGroups
from transactions.operations.begin import Begin
from transactions.operations.validation import BeginTransaction

# For so long a request may wait for the late answer before it comes.
PATIENCE_SECONDS = 2.0
# And for so long the first look-up is under way: the request joins it.
FIRST_SECONDS = 0.2


@pytest.fixture(scope="module")
def keeper(prepared: str) -> Iterator[Keeper]:
    """This process's broker code, on a database of its own."""
    with databases.copied(prepared) as database_url, Keeper(database_url) as keeper:
        yield keeper


async def beside_late_look_ups(cache: Any, name: str, request: Coroutine[Any, Any, Any]) -> Any:
    """What a request is answered that joins a look-up of another one, which began before `name` was made. Once that
    has ended another such look-up is under way, whose answer comes when the request has waited for it."""

    async def finds_none() -> TopicFacts | None:
        await asyncio.sleep(FIRST_SECONDS)
        return None

    async def finds_none_late() -> TopicFacts | None:
        await answer.wait()
        return None

    async def look_ups() -> None:
        await cache.get(name, finds_none)
        await cache.get(name, finds_none_late)

    answer = asyncio.Event()
    others = asyncio.create_task(look_ups())
    await asyncio.sleep(0)
    asked = asyncio.create_task(request)
    await asyncio.wait((asked,), timeout=PATIENCE_SECONDS)
    answer.set()
    await others
    return await asked


@pytest.mark.parametrize("op", ["send", "half of a new topic", "half of a new group"])
def test_a_repeat_beside_look_ups_from_before_its_first_is_answered_as_that_was(keeper: Keeper, op: str) -> None:
    async def ask() -> dict[str, Any]:
        if op == "send":
            return fields_of((await writer.run(Send(Message(topic=topic, body="order 1", message_id=id_))))[0])
        half = BeginTransaction(topic=topic, body="order 1", producer_group=group, transaction_id=id_)
        begun = await writer.run(Begin(half))
        return fields_of(begun)

    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        first = await ask()
        if op == "half of a new group":
            groups.forget(group)
            return first, await beside_late_look_ups(runtime.control(ProducerGroups)._by_name, group, ask())
        topics.forget(topic)
        return first, await beside_late_look_ups(runtime.control(Topics).by_name, topic, ask())

    id_ = uuid.uuid4()
    topic, group = f"orders-{id_.hex}", f"shop-{id_.hex}"

    first, repeat = keeper.do(run())

    assert repeat == {**first, "duplicate": True}


def test_a_first_use_beside_a_look_up_from_before_its_end_makes_its_topic_and_uses_it(keeper: Keeper) -> None:
    async def finds_none_late() -> TopicFacts | None:
        await answer.wait()
        return None

    async def first_use() -> dict[str, Any]:
        asked = asyncio.create_task(sent(topic, "order 1"))
        with keeper.session() as other:
            other.execute("LOCK TABLE topic IN SHARE MODE")
            while not keeper.sql("SELECT pid FROM pg_locks WHERE relation = 'topic'::regclass AND NOT granted"):
                await asyncio.wait((asked,), timeout=0.01)
            late = asyncio.create_task(runtime.control(Topics).by_name.get(topic, finds_none_late))
            await asyncio.sleep(0)
        await asyncio.wait((asked,), timeout=PATIENCE_SECONDS)
        answer.set()
        await late
        return await asked

    answer = asyncio.Event()
    topic = f"orders-{uuid.uuid4().hex}"

    assert keeper.do(first_use())["queue_offset"] == 0
