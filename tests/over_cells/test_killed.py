"""A cell's server is killed, then the control's: the topics of the others go on as before.

`MQ_BURDENS=1 ./mq test tests/over_cells/test_killed.py -s`, on a quiet machine, prints the figures and holds those that
are promised: 0.95 of the rate and 1.5 times the p99, the control away for 60 s.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from mqbroker_client import Admin

from mqbroker.embedded import commands
from mqbroker.embedded.servers import postgres
from tests.broker import characters, databases, forks
from tests.broker.burdens import IS_STRICT
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.cells.installation import Installation
from tests.console.conftest import PASSWORD, USERS
from tests.console.operators import Operator
from tests.over_cells.load import Callers, Figures, rounds

CALM_SECONDS, KILLED_SECONDS, CONTROL_SECONDS = (15.0, 15.0, 60.0) if IS_STRICT else (3.0, 3.0, 6.0)
LEAST_RATE, MOST_P99 = (0.95, 1.5) if IS_STRICT else (0.5, 10.0)
# Of a hundred calls a second, the p99 is that of two or three.
MOST_P99_SECONDS = 0.0 if IS_STRICT else 0.5
# Those that the killed server had just been asked: the web process gives up within a second.
SETTLE_SECONDS = 1.0
LEAST_CALLS = 30

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[postgres.Server]]:
    """A PostgreSQL of the control's own, and one of c2's."""
    found = [postgres.Server(tmp_path_factory.mktemp(f"postgres{number}")) for number in range(2)]
    for server in found:
        server.start()
    yield found
    for server in found:
        server.stop()


@pytest.fixture(scope="module")
def broker(servers: Sequence[postgres.Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with the cells c0, c1 and c2, each on a server of its own."""
    folder: Path = tmp_path_factory.mktemp("broker")
    broker = RunningBroker(folder, servers[0].url, os.environ["REDIS_URL"], webs=2)
    broker.prepare()
    with databases.fresh() as c1:
        installation = Installation(broker)
        installation.add("c1", c1)
        installation.add("c2", servers[1].url)
        with broker:
            yield broker


@pytest.fixture(scope="module")
def callers(broker: RunningBroker) -> Sequence[Callers]:
    """The callers of a topic in each cell."""
    found = [Callers(characters.name("order-service"), characters.name(f"of-{cell}")) for cell in range(3)]
    for cell, one in enumerate(found):
        assert Installation(broker).run("open", f"c{cell}").returncode == 0
        Admin(broker.client()).create_topic(one.topic, queues=4)
    return found


async def test_the_others_keep_their_rate_while_a_cell_is_killed_and_the_console_names_it(
    broker: RunningBroker, servers: Sequence[postgres.Server], callers: Sequence[Callers]
) -> None:
    forks.run(commands.manage("shell", "--verbosity", "0", "--command", USERS), broker.environment).check_returncode()
    ada = Operator.signed_in(broker.url, "ada", PASSWORD)

    calm, killed = await measured(broker, callers, servers[1], callers[2], KILLED_SECONDS)
    servers[1].kill()
    try:
        page = await asyncio.to_thread(ada.sees, "topics/")
    finally:
        servers[1].start()

    assert "The cell c2 does not answer" in page.text
    assert killed[2].rate < calm[2].rate / 5
    for cell in range(2):
        keeps(calm[cell], killed[cell])
    await asyncio.to_thread(eventually, lambda: sends(broker, callers[2].topic), 20)


async def test_messages_flow_while_the_control_is_killed(
    broker: RunningBroker, servers: Sequence[postgres.Server], callers: Sequence[Callers]
) -> None:
    calm, killed = await measured(broker, callers, servers[0], callers[0], CONTROL_SECONDS)

    assert killed[0].rate < calm[0].rate / 5
    for cell in (1, 2):
        keeps(calm[cell], killed[cell])
    await asyncio.to_thread(eventually, lambda: sends(broker, callers[0].topic), 20)


async def called(callers: Sequence[Callers], seconds: float) -> None:
    """Returns after a time in which each of them has ended so many transactions that a rate can be read of them."""
    goals = [len(one.done) + LEAST_CALLS for one in callers]
    await asyncio.sleep(seconds)
    for one, goal in zip(callers, goals, strict=True):
        # Six tasks note in it what they have ended.
        while len(one.done) < goal:  # noqa: ASYNC110  # there is no event of a list
            await asyncio.sleep(0.1)


async def measured(
    broker: RunningBroker, callers: Sequence[Callers], server: postgres.Server, stopped: Callers, seconds: float
) -> tuple[list[Figures], list[Figures]]:
    """The figures of the callers of each cell before a server is killed, which has one's topic, and while it is."""
    over: asyncio.Queue[bool] = asyncio.Queue()
    running = asyncio.create_task(rounds(broker.urls, callers, over))
    await asyncio.sleep(SETTLE_SECONDS)
    began = time.monotonic()
    await called(callers, CALM_SECONDS)
    killed_at = time.monotonic()
    server.kill()
    try:
        await called([one for one in callers if one is not stopped], seconds)
        ended = time.monotonic()
    finally:
        await over.put(True)
        await running
        # In this thread: a server ends with the thread that has started it.
        server.start()
    found = [one.within(began, killed_at) for one in callers], [one.within(killed_at, ended) for one in callers]
    for cell, (before, meanwhile) in enumerate(zip(*found, strict=True)):
        print(f"c{cell}: {before} -> {meanwhile}")
    return found


def keeps(calm: Figures, killed: Figures) -> None:
    """Holds that a cell goes on as before."""
    assert killed.refused == 0, killed
    assert killed.rate >= LEAST_RATE * calm.rate, (calm, killed)
    assert killed.p99 <= max(MOST_P99 * calm.p99, MOST_P99_SECONDS), (calm, killed)


def sends(broker: RunningBroker, topic: str) -> bool:
    return broker.wire().post("/v1/messages", {"topic": topic, "body": "x"}).status == 201
