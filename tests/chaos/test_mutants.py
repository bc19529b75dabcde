"""A broker that promises less is caught: the same producers, the same ledger, and a flaw made on purpose."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mqbroker_client import Admin

from embedded.servers import postgres
from tests.broker.load import Crowd
from tests.broker.running import RunningBroker
from tests.chaos.shops import Shop, everything

KILLS = 3
ACKNOWLEDGED = 200
# Module, text, and what it is replaced by.
NO_DURABILITY = [
    ("store.db.connections", "synchronous_commit=on", "synchronous_commit=off"),
    ("store.db.guards", 'or state.synchronous_commit != "on"', ""),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[postgres.Server]:
    """A PostgreSQL that may be killed."""
    tmp_path.chmod(0o711)
    server = postgres.Server(tmp_path / "postgres")
    server.start()
    yield server
    server.stop()


def mutant(server: postgres.Server, folder: Path, changes: list[tuple[str, str, str]]) -> RunningBroker:
    """A broker whose processes have the changes."""
    running = RunningBroker(folder, server.url, os.environ["REDIS_URL"], tasks=False)
    running.prepare()
    path = os.pathsep.join([str(Path(__file__).parent / "mutant"), running.environment["PYTHONPATH"]])
    for child in running.children:
        child.environment.update(PYTHONPATH=path, MUTANT=json.dumps(changes))
    return running


def test_a_broker_that_answers_before_its_commit_is_on_disk_is_caught(server: postgres.Server, tmp_path: Path) -> None:
    async def flaws(broker: RunningBroker) -> list[str]:
        Admin(broker.client()).create_topic("orders", queues=4)
        async with Crowd(broker.urls) as crowd:
            async with Shop(crowd, "orders") as shop:
                for _ in range(KILLS):
                    await shop.has_acknowledged(ACKNOWLEDGED)
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
            return shop.ledger.flaws(await everything(crowd, "orders"))

    with mutant(server, tmp_path / "broker", NO_DURABILITY) as broker:
        try:
            found = asyncio.run(flaws(broker))
        except AssertionError as refused:
            # A half message that was acknowledged is gone: its end is refused as no insisting helps.
            found = [str(refused)]

    assert [flaw for flaw in found if "was acknowledged" in flaw or "There is no transaction" in flaw]
