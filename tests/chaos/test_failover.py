"""Failover to a synchronous standby under load: nothing acknowledged is lost, and no process is started again."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from mqbroker_client import Admin

from mqbroker.embedded.servers import postgres
from mqbroker.embedded.servers.standby import NAME, Standby, superuser_url
from tests.broker import prepared_servers
from tests.broker.load import Crowd
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.chaos.shops import Shop, everything

ACKNOWLEDGED = 300


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[postgres.Server]:
    tmp_path.chmod(0o711)
    server = prepared_servers.started(postgres.Server(tmp_path / "primary"))
    yield server
    server.stop()


@pytest.fixture
def standby(primary: postgres.Server, tmp_path: Path) -> Iterator[Standby]:
    """A synchronous standby: each commit waits for it."""
    server = Standby(primary, tmp_path / "standby")
    server.copy()
    server.start()
    synchronize(primary)
    yield server
    server.stop()


def synchronize(primary: postgres.Server) -> None:
    """Has every commit wait for the standby; returns when it follows."""
    with psycopg.connect(superuser_url(primary), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'".encode())
        connection.execute("SELECT pg_reload_conf()")
        following = "SELECT sync_state FROM pg_stat_replication"
        eventually(lambda: connection.execute(following.encode()).fetchall() == [("sync",)])


def both(primary: postgres.Server, standby: postgres.Server) -> str:
    """A DATABASE_URL that names both, and takes the one that accepts writes."""
    url = urlsplit(primary.url)
    user = url.netloc.rpartition("@")[0]
    hosts = ",".join(f"127.0.0.1:{urlsplit(server.url).port}" for server in (primary, standby))
    return url._replace(netloc=f"{user}@{hosts}", query="target_session_attrs=read-write").geturl()


async def test_what_was_acknowledged_outlives_the_primary_and_no_process_is_restarted(
    primary: postgres.Server, standby: Standby, tmp_path: Path
) -> None:
    broker = RunningBroker(tmp_path / "broker", both(primary, standby), os.environ["REDIS_URL"], webs=2)
    with broker:
        pids = [child.pid for child in broker.children]
        Admin(broker.client()).create_topic("orders", queues=4)
        async with Crowd(broker.urls) as crowd:
            async with Shop(crowd, "orders") as shop:
                await shop.has_acknowledged(ACKNOWLEDGED)
                await asyncio.to_thread(primary.kill)
                before = len(shop.ledger.visible)
                await asyncio.to_thread(standby.promote)
                shop.forget_acknowledged()
                await shop.has_acknowledged(ACKNOWLEDGED)
            found = await everything(crowd, "orders")

        assert shop.ledger.flaws(found) == []
        assert len(shop.ledger.visible) > before > 0
        assert [child.pid for child in broker.children if child.is_running()] == pids
