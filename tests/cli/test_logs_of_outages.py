"""The log of a database that does not answer: a line for each work that has to wait, and no trace of an exception."""

import os
from collections.abc import Iterator

import pytest

from tests.broker import databases
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import RunningBroker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]


@pytest.fixture
def proxy(prepared: str) -> Iterator[DatabaseProxy]:
    with databases.copied(prepared) as database_url, DatabaseProxy(database_url) as proxy:
        yield proxy


@pytest.fixture
def distant(proxy: DatabaseProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with a worker and beat, whose database is behind the proxy."""
    running = RunningBroker(tmp_path_factory.mktemp("distant"), proxy.url, os.environ["REDIS_URL"])
    with running:
        yield running


def test_a_task_that_finds_no_database_is_one_line_of_the_workers_log(
    distant: RunningBroker, proxy: DatabaseProxy
) -> None:
    def tasks_that_waited() -> set[str]:
        lines = distant.worker.log.read_text().splitlines()
        return {line.partition("task=")[2].split()[0] for line in lines if " could not work " in line}

    proxy.swallow(packets=True)
    eventually(
        lambda: {"transactions.check", "scheduling.release", "actions.run"} <= tasks_that_waited(), at_this_load(60)
    )
    proxy.swallow(packets=False)

    assert "Traceback" not in distant.worker.log.read_text()
