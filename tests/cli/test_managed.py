"""A PostgreSQL within the limits that managed services document carries the whole broker, and doctor finds no fault."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mqbroker_client import Admin, Producer

from mqbroker.embedded import commands
from mqbroker.embedded.folder import why_taken
from tests.analytics import parquet, sources
from tests.broker import characters, forks, managed, poolers
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.receiving import Receiving
from tests.broker.running import API_KEY, QUICK, RunningBroker
from tests.control.operators import Operator

BODIES = {"committed", "checked", "sent", "at a level", "at a time", "by schedule"}
# A statement that only the provider or a superuser may run, and the end of a session by a limit of the provider's.
COMPLAINTS = re.compile(r"mqbroker.*(?:ERROR|FATAL): .*(?:permission denied|must be|due to \w+.timeout|terminating)")
CHANGES = re.compile(r"ALTER (?:ROLE|USER|SYSTEM|DATABASE)|CREATE (?:EXTENSION|ROLE|USER)")
# Behind a pooler, which passes on no settings of a session: the role's own, in its own database.
OWN_DEFAULTS = re.compile(rf'ALTER ROLE "{managed.BROKER}" IN DATABASE "{managed.DATABASE}" SET')


@pytest.fixture(scope="module", params=["direct", "transaction"])
def way(request: pytest.FixtureRequest) -> str:
    """How the broker reaches the server: directly, or by PgBouncer, which pools by transaction."""
    if request.param == "transaction":
        poolers.fit()
    return str(request.param)


@pytest.fixture(scope="module")
def server(way: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[managed.Managed]:
    folder = tmp_path_factory.mktemp("managed")
    # PostgreSQL may run as another user, which has to pass through.
    folder.chmod(0o755)
    made = managed.Managed(folder / "server", managed.certify(folder))
    made.start()
    try:
        made.hand_over()
        yield made
    finally:
        made.stop()


@dataclass(frozen=True)
class Installation:
    """A broker on the managed server."""

    server: managed.Managed
    running: RunningBroker

    @property
    def operator(self) -> Operator:
        return Operator(self.running.url, API_KEY)

    def manage(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of manage.py in the environment of the broker."""
        # Beside several processes of tests an export that gives way to all of them would hardly go on.
        environment = {**self.running.environment, "MQBROKER_EXPORT_NICE": "0"}
        return forks.run(commands.manage(*words), environment)


@pytest.fixture(scope="module")
def variables(way: str, server: managed.Managed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where the broker's database is: with TLS to the server, from the broker or from the pooler."""
    if way == "direct":
        yield {"DATABASE_URL": server.url}
        return
    with tempfile.TemporaryDirectory() as readable, ExitStack() as stack:
        # For PgBouncer, which is another user and may not enter the folders of pytest.
        Path(readable).chmod(0o755)
        authority = shutil.copy(server.certificates / "ca.pem", readable)
        tls = f"server_tls_sslmode = verify-full\nserver_tls_ca_file = {authority}"
        folder = tmp_path_factory.mktemp("pooler")
        pooler = stack.enter_context(poolers.pooler(folder, server.url, way, more=tls))
        # No session yet: it would not have the defaults that the first start gives the role.
        eventually(lambda: why_taken(urlsplit(pooler.url).port or 0))
        yield {"DATABASE_URL": pooler.url, **pooler.settings}


@pytest.fixture(scope="module")
def installed(
    server: managed.Managed, variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder, others = tmp_path_factory.mktemp("broker"), dict(variables)
    running = RunningBroker(folder, others.pop("DATABASE_URL"), os.environ["REDIS_URL"], {**QUICK, **others})
    running.prepare()
    with running:
        yield Installation(server, running)


def test_a_half_a_check_a_delay_and_a_schedule_need_no_more_than_the_service_gives(
    installed: Installation, endpoint: ProducerEndpoint
) -> None:
    orders = Receiving(installed.operator)
    orders.prepare()
    producer, topic = Producer(installed.running.client(), characters.name("shop")), orders.topic
    Admin(installed.running.client()).create_producer_group(producer.group)
    Admin(installed.running.client()).register_endpoint(producer.group, endpoint.url, timeout_seconds=5)
    plan = {"cron": "0 0 1 1 *", "message": {"topic": topic, "body": "by schedule"}}

    producer.begin(topic, b"committed").commit()
    producer.begin(topic, b"rolled back").rollback()
    producer.begin(topic, b"checked")
    producer.send(topic, b"sent")
    producer.send(topic, b"at a level", delay_level=1)
    producer.send(topic, b"at a time", deliver_at=datetime.now(UTC) + timedelta(seconds=1))
    assert installed.operator.put("/v1/schedules/yearly", **plan).status == 201
    assert installed.operator.make("/v1/schedules/yearly/firings").status == 201

    assert {message["body"] for message in orders.receives_all(6)} == BODIES
    assert endpoint.asked


def test_the_doctor_finds_no_fault_that_does_not_mend_itself(installed: Installation) -> None:
    def is_in_order() -> bool:
        done = installed.manage("doctor", "--json")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        # A busy machine may keep a process from noting itself for a moment.
        return done.returncode == 0 and not [one for one in found if one["urgent"]]

    assert eventually(is_in_order)


def test_what_is_exported_is_read_by_tls(installed: Installation) -> None:
    Producer(installed.running.client(), "shop").send("exported", b"sent")

    assert b"sent" in [row["body"] for row in sources.streamed(installed.server.url, table="messages")]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("way", "reader"), [("direct", "jdbc"), ("transaction", "source")], indirect=["way"], scope="module"
)
def test_an_export_reads_by_tls_past_the_pooler(installed: Installation, reader: str, tmp_path: Path) -> None:
    sent = Producer(installed.running.client(), "shop").send(f"exported-by-{reader}", b"sent")

    done = installed.manage("export", "--to", str(tmp_path / "export"), "--reader", reader)

    assert done.returncode == 0, done.stderr
    assert str(sent.message_id) in {str(row["message_id"]) for row in parquet.rows(tmp_path / "export" / "messages")}


def test_nothing_was_asked_of_the_server_that_only_its_provider_may_do(installed: Installation) -> None:
    of_broker = [line for line in installed.server.log().splitlines() if line.startswith(("mqbroker", "manage"))]

    assert any("CREATE TABLE" in line for line in of_broker)
    foreign = [line for line in of_broker if not OWN_DEFAULTS.search(line)]
    assert [line for line in foreign if COMPLAINTS.search(line) or CHANGES.search(line)] == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sslmode": "disable"}, "no encryption"),
        ({"sslrootcert": "server.pem"}, "certificate verify failed"),
    ],
)
@pytest.mark.parametrize("way", ["direct"], indirect=True, scope="module")
def test_a_url_without_the_services_tls_is_refused_with_the_reason(
    server: managed.Managed, options: dict[str, str], reason: str
) -> None:
    given = {name: str(server.certificates / value) if ".pem" in value else value for name, value in options.items()}
    environment = {**os.environ, "DATABASE_URL": server.url_of(managed.BROKER, **given)}

    done = forks.run(commands.manage("prepare"), environment)

    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: DATABASE_URL leads into no database: ")
    assert reason in done.stderr
    assert server.folder.secret("postgres") not in done.stderr
