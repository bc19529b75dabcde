"""The characters of every test that needs a running broker: it is started once, at its first use."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from django.db import connection
from mqbroker_client import Consumer, Producer

from store.db.server_url import database
from store.process import runtime
from store.process.runtime import Runtime
from tests import packages
from tests.barrier import mariadb
from tests.broker import cells, characters, databases, poolers, processor_time
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.running import POOLED, RunningBroker
from tests.broker.wire import Wire
from tests.folders import pytest_collect_directory

__all__ = ["pytest_collect_directory"]

REDIS_URL = "redis://127.0.0.1:6379/0"


# Kinds of test that take long, by the fixtures or the folder that make them so.
SLOW_FIXTURES = {
    "browser": {"browser", "chromium"},
    "spark": {"spark", "exported", "killed", "cluster"},
    "heavy": {"language", "installed_with_extras"},
}
CHAOS_FOLDERS = {"chaos", "moves"}


# Before a release, and after a change of what they are about.
SKIP_LONG = pytest.mark.skip(reason="it only varies what a shorter test holds: ./mq test --all runs it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the slow kinds: `-m "not browser and not spark and not chaos"` leaves them out. Skips the long ones."""
    for item in items:
        if item.get_closest_marker("long") and "MQ_LONG" not in os.environ:
            item.add_marker(SKIP_LONG)
        fixtures = set(getattr(item, "fixturenames", ()))
        for marker, names in SLOW_FIXTURES.items():
            if names & fixtures:
                item.add_marker(marker)
        if item.path.parent.name in CHAOS_FOLDERS:
            item.add_marker("chaos")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What ran on this machine only in part is said last."""
    for line in packages.closing_lines(str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line, yellow=True)
    if loop_seconds := os.environ.get("MQ_LOOP_SECONDS"):
        loop = f"the loop of tools/machine.py takes {1000 * float(loop_seconds):.1f} ms here"
        terminalreporter.write_line(f"{cpu_seconds():,.0f} CPU seconds of all processes; {loop}.")


def cpu_seconds() -> float:
    """Of all that `./mq test` has started, its servers included, and of what has ended below them: `tools.reaper`, the
    parent of pytest, has waited for what lost its own parent.
    """
    command = psutil.Process(os.getppid()).parent()
    return processor_time.used_below(command) if command else 0.0


@pytest.fixture(scope="session", autouse=True)
def exports_without_manners() -> None:
    """Beside several processes of tests an export that gives way to all of them would hardly go on."""
    os.environ.setdefault("MQBROKER_EXPORT_NICE", "0")


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database with the broker's tables and key, which is copied and never used itself.

    Migrations take seconds, a copy takes a fraction of one: nearly all brokers of the tests run on a copy.
    """
    with databases.fresh() as database_url:
        RunningBroker(tmp_path_factory.mktemp("prepared"), database_url, REDIS_URL).prepare()
        yield database_url


@pytest.fixture(scope="session")
def django_db_setup(prepared: str) -> Iterator[None]:
    """The database of pytest-django's fixtures, in this process: `db`, `client`, `admin_client` and what they lead to.

    Its own way runs every migration. What a test writes there is rolled back, so it is for what Django does alone: the
    message path has connections of its own, and sees none of it.
    """
    with databases.copied(prepared) as url:
        before = dict(connection.settings_dict)
        connection.settings_dict.update(database(url))
        yield
        connection.close_pool()  # type: ignore[attr-defined]  # the stubs know no pool
        connection.settings_dict.update(before)


@pytest.fixture
def db(db: None) -> Iterator[None]:
    """pytest-django's, with a runtime of the test's own, as each process of the broker has one."""
    with runtime.installed(Runtime()):
        yield


@pytest.fixture(scope="session")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Two web processes, a worker and beat, with every time short."""
    folder: Path = tmp_path_factory.mktemp("broker")
    with cells.installation(prepared) as database_url:
        with ExitStack() as stack:
            if poolers.MODE:
                pooler = stack.enter_context(poolers.pooler(folder / "pooler", database_url, poolers.MODE))
                database_url = pooler.url
                POOLED[database_url] = pooler.settings
            running = RunningBroker(folder, database_url, os.environ.get("REDIS_URL", REDIS_URL), webs=2)
            if poolers.MODE:
                running.prepare()
                poolers.ready(pooler)
            yield stack.enter_context(running)
        assert "Traceback" not in running.log(), "a process failed where it should have refused: see its log"
        assert cells.REFUSED_BY_GUARD not in running.log(), "a session worked for two cells: see the log"


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[mariadb.Server]:
    """One MariaDB for the producers' databases of all folders."""
    with mariadb.running(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(autouse=True)
def placed(request: pytest.FixtureRequest) -> Iterator[None]:
    """With several cells, the topics of a test that says so lie in one of them."""
    together = next(iter(request.node.iter_markers("one_cell")), None)
    if cells.CELLS == 1 or together is None:
        yield
        return
    with cells.in_one(request.getfixturevalue("broker").database_url, control=together.kwargs.get("control", False)):
        yield


@pytest.fixture
def wire(broker: RunningBroker) -> Wire:
    """Plain HTTP to the broker."""
    return broker.wire()


@pytest.fixture
def producer(broker: RunningBroker) -> Producer:
    """The order service."""
    return Producer(broker.client(), characters.name("order-service"))


@pytest.fixture
def consumer(broker: RunningBroker) -> Consumer:
    """The coupon service."""
    return Consumer(broker.client(), characters.name("coupon-service"))


@pytest.fixture
def distant_consumer(broker: RunningBroker, consumer: Consumer) -> Consumer:
    """Another consumer of the same group, at the other web process."""
    return Consumer(broker.client(web=1), consumer.group)


@pytest.fixture
def orders() -> str:
    """A topic that is made at its first use."""
    return characters.name("orders")


@pytest.fixture
def coupons() -> str:
    """Another topic."""
    return characters.name("coupons")


@pytest.fixture
def endpoint() -> Iterator[ProducerEndpoint]:
    """A producer's server that is not registered yet; it commits."""
    with ProducerEndpoint() as endpoint:
        endpoint.replies(states("COMMIT"))
        yield endpoint


@pytest.fixture
def producer_endpoint(broker: RunningBroker, producer: Producer, endpoint: ProducerEndpoint) -> ProducerEndpoint:
    """The order service's own server, where the broker asks."""
    characters.register(broker, producer.group, endpoint.url)
    return endpoint
