"""The characters of accidents: a PostgreSQL that may be killed, and a broker on it."""

import os
from collections.abc import Iterator

import pytest

from mqbroker.embedded.servers import postgres
from tests.broker import databases, prepared_servers
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.running import RunningBroker


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    """A PostgreSQL that may be killed, with the tables of the broker."""
    server = prepared_servers.started(postgres.Server(tmp_path_factory.mktemp("postgres")))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def proxy(prepared: str) -> Iterator[DatabaseProxy]:
    """The way to a database of a broker, which may fall silent."""
    with databases.copied(prepared) as database_url, DatabaseProxy(database_url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def mortal_broker(server: postgres.Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker on that PostgreSQL."""
    with RunningBroker(tmp_path_factory.mktemp("broker"), server.url, os.environ["REDIS_URL"], webs=2) as broker:
        yield broker
