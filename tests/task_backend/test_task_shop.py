"""Tasks while programs, workers and brokers are killed: the task of a committed order runs, once, and no other does."""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from tests.barrier import places
from tests.barrier.places import Place
from tests.broker import cells, databases
from tests.broker.forks import ForkedChild
from tests.broker.running import RunningBroker
from tests.conftest import REDIS_URL
from tests.task_backend.conftest import PYTHON, Project, migrated

pytestmark = [pytest.mark.chaos, pytest.mark.heavy, pytest.mark.timeout(900)]
# MQ_TASK_ORDERS=5000 in the environment: some minutes.
ORDERS = int(os.environ.get("MQ_TASK_ORDERS", "200"))
# Between two kills: the load.
PAUSE_SECONDS = 1.5
# What a killed broker handed out to nobody comes again within the minute for which the test waits.
WORKER = ("mq_worker", "--invisible-seconds", "15")
FIGURE = pytest.mark.skipif("MQ_TASK_LOSSES" not in os.environ, reason="a figure: MQ_TASK_LOSSES=1 prints it")


@pytest.fixture
def broker(prepared: str, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker whose web process may be killed."""
    redis = os.environ.get("REDIS_URL", REDIS_URL)
    with cells.installation(prepared) as url, RunningBroker(tmp_path / "broker", url, redis) as running:
        yield running


@pytest.fixture(params=["postgresql", "mariadb"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """The shop's own database."""
    if request.param == "postgresql":
        with places.postgresql("read committed") as place:
            yield place
    else:
        with places.of_mariadb(request.getfixturevalue("mariadb_server")) as place:
            yield place


def child(project: Project, name: str, *words: str) -> Child:
    """A process of the shop."""
    log = project.folder / f"{name}.log"
    return ForkedChild(name, [PYTHON, *words], project.environment, log, ROOT, stop_seconds=30)


def numbers(place: Place, statement: str) -> Counter[int]:
    """How often each number is in a column."""
    return Counter(int(number) for (number,) in place.run(statement))


def orders_and_runs(
    project: Project, place: Place, way: str, worker: Sequence[str]
) -> tuple[Counter[int], Counter[int]]:
    """The committed orders, and how often the task of each ran, after processes were killed among them."""
    mortal = {
        "program": child(project, "program", "-m", "tests.task_backend.project", "ordering", way),
        "worker": child(project, "worker", "-m", "django", *worker),
    }
    chosen = random.Random(7)
    with ExitStack() as stack:
        for each in mortal.values():
            stack.callback(each.stop)
            each.start()
        turns = 0
        while numbers(place, "SELECT id FROM project_order").total() < ORDERS or turns < 9:
            time.sleep(PAUSE_SECONDS)
            victim = [*mortal, "broker"][turns % 3]
            turns += 1
            if victim == "broker":
                project.broker.webs[0].kill()
                time.sleep(chosen.random())  # it stays away for a moment
                project.broker.webs[0].start()
            else:
                mortal[victim].kill()
                if victim == "worker" and worker is WORKER:
                    project.let_deliveries_expire()
                mortal[victim].start()
        mortal["program"].kill()
        project.broker.wait_until_ready()
        wait_until_still(place, mortal["worker"])
    return numbers(place, "SELECT id FROM project_order"), numbers(place, "SELECT about FROM project_run")


def wait_until_still(place: Place, worker: Child) -> None:
    """Returns once each order has its run, or no further run has come for a minute."""
    found, last_at = -1, time.monotonic()
    while time.monotonic() - last_at < 60:
        if not worker.is_running():
            worker.start()
        orders = numbers(place, "SELECT id FROM project_order")
        runs = numbers(place, "SELECT about FROM project_run")
        if orders.keys() <= runs.keys():
            return
        if found != runs.total():
            found, last_at = runs.total(), time.monotonic()
        time.sleep(0.5)  # nothing says that no task is left


def test_the_task_of_each_committed_order_runs_once_and_that_of_no_other(
    broker: RunningBroker, place: Place, tmp_path: Path
) -> None:
    # Each kill of a worker is an attempt of the tasks that the worker has received.
    with migrated(broker, place.url, tmp_path, options={"MAX_RETRIES": 100}) as project:
        orders, runs = orders_and_runs(project, place, "within", WORKER)

    print(f"{orders.total()} orders, {runs.total()} runs")
    assert orders.total() >= ORDERS
    assert (orders - runs, runs - orders) == (Counter(), Counter())


@FIGURE
@pytest.mark.parametrize("way", ["within", "behind"])
def test_a_queue_in_another_database_loses_tasks_or_runs_them_without_their_order(
    broker: RunningBroker, tmp_path: Path, way: str
) -> None:
    pytest.importorskip("django_tasks_db")
    more = {"apps": ["django_tasks_db"], "tasks": {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}}
    with ExitStack() as stack:
        # On MariaDB its migrations fail where a router keeps its table out of the program's database.
        place = stack.enter_context(places.postgresql("read committed"))
        other = stack.enter_context(databases.fresh())
        project = stack.enter_context(migrated(broker, place.url, tmp_path, other=other, **more))
        orders, runs = orders_and_runs(project, place, way, ["db_worker"])

    lost, strange = orders.keys() - runs.keys(), runs.keys() - orders.keys()
    print(f"{way}: {orders.total()} orders, {runs.total()} runs: {len(lost)} lost, {len(strange)} without an order")
    assert lost or strange
