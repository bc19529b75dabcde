"""A broker at a replica tells what it knows, and says of every write that its database takes none; so does a browser's
page, also while the database is away.
"""

import http.client
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from mqbroker.embedded import commands
from store.db import guards
from tests.broker import databases, forks
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import problem
from tests.control.conftest import PASSWORD, SET_PASSWORD, SETTINGS
from tests.control.operators import Operator

READ_ONLY = "This database is read-only: nothing was stored. Ask a broker that is at the primary."
MAKE_TOPIC = """
from delivery import registry as groups
from store import registry
registry.put("orders", {})
groups.put("coupons", {})
"""


@pytest.fixture(scope="module")
def replica(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """A caller with the first key of a broker whose database refuses writes, as a replica does."""
    with databases.copied(prepared) as url:
        running = RunningBroker(tmp_path_factory.mktemp("replica"), url, "redis://127.0.0.1:9/0", SETTINGS, tasks=False)
        words = commands.manage("shell", "--verbosity", "0", "--command", SET_PASSWORD + MAKE_TOPIC)
        forks.run(words, running.environment).check_returncode()
        with psycopg.connect(url, autocommit=True) as connection:
            name = sql.Identifier(url.rpartition("/")[2])
            connection.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        with running:
            yield Operator(running.url, API_KEY)


def test_it_is_ready_and_tells_what_it_knows(replica: Operator) -> None:
    offsets = "/v1/consumer-groups/coupons/offsets?topic=orders"

    assert [replica.get(path).status for path in ("/readyz", "/v1/topics", "/v1/stats", offsets)] == [200] * 4
    assert guards.READ_ONLY in replica.reads("/readyz")["warnings"]


@pytest.mark.parametrize(
    ("method", "path", "document"),
    [
        ("POST", "/v1/messages", b'{"topic": "orders", "body": "order 1"}'),
        ("POST", "/v1/transactions", b'{"topic": "orders", "body": "order 1", "producer_group": "shop"}'),
        ("POST", "/v1/consumer-groups/coupons/receive", b'{"topic": "orders"}'),
        ("PUT", "/v1/topics/orders", b'{"queues": 2}'),
        ("PUT", "/v1/consumer-groups/coupons", b"{}"),
    ],
)
def test_a_write_is_refused_and_sent_to_the_primary(
    replica: Operator, method: str, path: str, document: bytes | None
) -> None:
    answer = replica.call(method, path, document)

    assert answer.problem == problem(503, "system_busy", READ_ONLY)
    assert answer.headers["retry-after"] == "1"


@pytest.mark.chaos
def test_a_console_whose_database_is_away_says_so_on_its_page(tmp_path: Path) -> None:
    nobody = f"postgresql://mqbroker@127.0.0.1:{free_port()}/mqbroker"
    running = RunningBroker(tmp_path, nobody, "redis://127.0.0.1:9/0", SETTINGS, tasks=False)
    running.webs[0].start()
    try:
        operator = Operator(running.url, None)
        eventually(lambda: alive(operator), within_seconds=60)

        page = operator.page("/console/", Cookie="sessionid=of-yesterday")

        assert (page.status, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert "The database is away (OperationalError): nothing was stored, try again in a second." in page.text
    finally:
        running.close()


def alive(operator: Operator) -> bool:
    try:
        return operator.get("/healthz").status == 200
    except OSError:
        return False


def test_whoever_signs_in_there_is_told_why_that_does_not_work(replica: Operator) -> None:
    line = http.client.HTTPConnection(urllib.parse.urlsplit(replica.url).netloc, timeout=120)
    line.request("GET", "/console/login/")
    page = line.getresponse()
    page.read()
    token = page.headers["Set-Cookie"].partition("csrftoken=")[2].partition(";")[0]
    form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": token}
    headers = {"Cookie": f"csrftoken={token}", "Content-Type": "application/x-www-form-urlencoded"}

    line.request("POST", "/console/login/", urllib.parse.urlencode(form), headers)
    answer = line.getresponse()

    assert (answer.status, answer.headers["Content-Type"]) == (503, "text/html; charset=utf-8")
    assert READ_ONLY in answer.read().decode()
    line.close()
