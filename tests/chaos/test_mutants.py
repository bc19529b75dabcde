"""A broker that promises less is caught: the same load and the same checker find its flaw, and none without it."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from mqbroker_client import Admin

from mqbroker.embedded.servers import postgres
from tests.broker import characters
from tests.broker.endpoints import Asked, ProducerEndpoint, states
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.races import Said, drained, race, race_in_pairs, wrongs
from tests.broker.running import RunningBroker
from tests.broker.tails import fill_and_tail
from tests.broker.tellings import told
from tests.chaos import mutants
from tests.chaos.mutants import Mutant
from tests.chaos.shops import Shop, everything

KILLS = 2
ACKNOWLEDGED = 100
EACH = 30
RACES = 240
PAIRS = 20
LATE = 10

Check = Callable[[RunningBroker], Awaitable[list[str]]]


async def found(check: Check, running: RunningBroker) -> list[str]:
    """The flaws that a check finds; also that an answer was none that any promise allows."""
    try:
        return await check(running)
    except AssertionError as refused:
        return [str(refused)]


async def after_kills(kill: Callable[[], None], running: RunningBroker) -> list[str]:
    """What a shop finds that was killed off under load, some times."""
    topic = characters.name("orders")
    Admin(running.client()).create_topic(topic, queues=4)
    async with Crowd(running.urls) as crowd:
        async with Shop(crowd, topic) as shop:
            for _ in range(KILLS):
                await shop.has_acknowledged(ACKNOWLEDGED)
                await asyncio.to_thread(kill)
        return shop.ledger.flaws(await everything(crowd, topic))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[postgres.Server]:
    """A PostgreSQL that may be killed."""
    tmp_path.chmod(0o711)
    server = postgres.Server(tmp_path / "postgres")
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("mutant", [None, mutants.ASYNCHRONOUS], ids=["the product", "the mutant"])
@pytest.mark.long
async def test_commits_that_are_not_on_disk_are_caught(
    server: postgres.Server, tmp_path: Path, mutant: Mutant | None
) -> None:
    def kill() -> None:
        server.kill()
        server.start()

    mutants.prepare(server.url, tmp_path / "prepared")
    with mutants.broker(mutant, server.url, tmp_path / "broker") as running:
        assert is_caught(await found(partial(after_kills, kill), running), mutant)


@pytest.mark.parametrize("mutant", [None, mutants.ANSWERS_BEFORE_COMMIT], ids=["the product", "the mutant"])
@pytest.mark.long
async def test_answers_before_the_commit_are_caught(prepared: str, tmp_path: Path, mutant: Mutant | None) -> None:
    with mutants.copy(mutant, prepared, tmp_path) as running:

        def kill() -> None:
            running.webs[0].send_to_group(signal.SIGKILL)
            assert running.webs[0].wait(120)
            running.webs[0].start()

        assert is_caught(await found(partial(after_kills, kill), running), mutant)


@pytest.mark.parametrize("mutant", [None, mutants.OFFSETS_BY_SEQUENCE], ids=["the product", "the mutant"])
@pytest.mark.long
async def test_offsets_by_a_sequence_are_caught(prepared: str, tmp_path: Path, mutant: Mutant | None) -> None:
    with mutants.copy(mutant, prepared, tmp_path, webs=2) as running:

        async def check(running: RunningBroker) -> list[str]:
            return await fill_and_tail(running, "orders", EACH)

        assert is_caught(await found(check, running), mutant)


@pytest.mark.parametrize("mutant", [None, mutants.READS_THEN_WRITES], ids=["the product", "the mutant"])
@pytest.mark.long
async def test_a_decision_that_is_read_and_then_written_is_caught(
    prepared: str, tmp_path: Path, endpoint: ProducerEndpoint, mutant: Mutant | None
) -> None:
    with mutants.copy(mutant, prepared, tmp_path, webs=2, tasks=True) as running:

        async def check(running: RunningBroker) -> list[str]:
            return (await race(running, endpoint, ("shop", "coupons"), "orders", RACES))[0]

        assert is_caught(await found(check, running), mutant)


@pytest.mark.parametrize("mutant", [None, mutants.READS_THEN_WRITES], ids=["the product", "the mutant"])
@pytest.mark.long
async def test_a_lone_decision_that_is_read_and_then_written_is_caught(
    prepared: str, tmp_path: Path, mutant: Mutant | None
) -> None:
    with mutants.copy(mutant, prepared, tmp_path, webs=2) as running:

        async def check(running: RunningBroker) -> list[str]:
            return await race_in_pairs(running, ("shop", "coupons"), "orders", PAIRS)

        assert is_caught(await found(check, running), mutant)


@pytest.mark.parametrize("mutant", [None, mutants.TAKES_LATE_ANSWERS], ids=["the product", "the mutant"])
@pytest.mark.long
async def test_an_answer_after_the_decision_is_caught(
    prepared: str, tmp_path: Path, endpoint: ProducerEndpoint, mutant: Mutant | None
) -> None:
    with mutants.copy(mutant, prepared, tmp_path, tasks=True) as running:
        assert is_caught(await found(partial(answered_late, endpoint), running), mutant)


async def answered_late(endpoint: ProducerEndpoint, running: RunningBroker) -> list[str]:
    """Rolls transactions back while their producer is asked about them; it answers COMMIT, but too late."""
    rolled_back = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def late(asked: Asked) -> web.StreamResponse:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(rolled_back.wait(), loop))
        return await states("COMMIT")(asked)

    endpoint.replies(late)
    characters.register(running, "shop", endpoint.url, max_batch=LATE, timeout_seconds=20)
    wire = running.wire()
    half = {"topic": "orders", "producer_group": "shop", "op": "half"}
    ids = [one["transaction_id"] for one in wire.bulk(*({**half, "body": f"order {n}"} for n in range(LATE)))]
    await asyncio.to_thread(eventually, lambda: all(endpoint.about(id_) for id_ in ids))
    end = {"op": "end", "producer_group": "shop", "state": "ROLLBACK"}
    ends = [
        Said(id_, "ROLLBACK", answer["status"], answer.get("state"))
        for id_, answer in zip(ids, wire.bulk(*({**end, "transaction_id": id_} for id_ in ids)), strict=True)
    ]
    rolled_back.set()

    def is_heard(id_: str) -> bool:
        return any(event["event"] == "check" for event in told(wire, id_)["history"])

    await asyncio.to_thread(eventually, lambda: all(map(is_heard, ids)))
    async with Crowd(running.urls) as crowd:
        delivered = await drained(crowd, "coupons", "orders")
    bodies = {f"order {number}": id_ for number, id_ in enumerate(ids)}
    return wrongs(ends, {id_: told(wire, id_)["state"] for id_ in ids}, {bodies[b]: n for b, n in delivered.items()})


def is_caught(flaws: list[str], mutant: Mutant | None) -> bool:
    """Whether flaws were found in the mutant, and none in the product."""
    assert mutant is not None or flaws == []
    return mutant is None or flaws != []
