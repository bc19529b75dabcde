"""A broker on a PostgreSQL as it is installed, with JIT on: no session of ours takes a setting that harms it."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import psycopg
import pyarrow
import pytest
from mqbroker_client import Consumer, Producer

from analytics import connections
from analytics.readers import address, arrow
from mqbroker.embedded import commands
from mqbroker.embedded.servers import plain
from store.db import conninfo, guards, server_url, session
from tests.broker import forks
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.control.operators import Operator
from tests.house.sources import modules
from tests.outboxes.conftest import table
from transactions.outboxes import source

APPS = ("store", "mqbroker", "console", "analytics", "transactions", "delivery", "scheduling")
# Sessions of several cells, and those that maintain segments, which are opened as the writers' are, every few minutes.
OTHERS = {"mqbroker-move", "mqbroker-cells", "mqbroker-segments"}
# No session: threads, and a file of Java's.
OTHERS |= {"mqbroker-background", "mqbroker-checks", "mqbroker-classes"}
# As a deployer's server may be set: to compile everything, and to forms in which nobody but people can read a result.
INSTALLED = {
    "jit": "on",
    "jit_above_cost": "0",
    "default_transaction_isolation": "serializable",
    "idle_session_timeout": "3s",
    "client_encoding": "LATIN1",
    "TimeZone": "Asia/Kolkata",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "standard_conforming_strings": "off",
}
# Each plan is logged with the name of its application, and with what its session has set otherwise than the program.
PLANS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_settings": "on",
    "log_line_prefix": "%a|",
}


class Installed(plain.Plain):
    settings: ClassVar = {**plain.Plain.settings, **INSTALLED}

    def __init__(self, data_folder: Path) -> None:
        super().__init__(data_folder)
        # Some distributions of PostgreSQL come without its contributed modules.
        self.logs_plans = any(self.binaries.parent.rglob("auto_explain.so"))

    def _command(self) -> list[str]:
        plans = PLANS if self.logs_plans else {}
        return [*super()._command(), *(word for name, value in plans.items() for word in ("-c", f"{name}={value}"))]

    def plans(self) -> dict[str, list[str]]:
        """The plans of all statements so far, by the name of the application."""
        if not self.logs_plans:
            pytest.skip("this PostgreSQL comes without auto_explain, which logs plans")
        found: dict[str, list[str]] = {}
        for entry in re.split(r"^(?=[\w -]*\|[A-Z]+: )", self.folder.log("postgres").read_text(), flags=re.MULTILINE):
            name, _, text = entry.partition("|")
            if "plan:\n" in text:
                found.setdefault(name, []).append(text)
        return found

    @contextmanager
    def set_to(self, **values: str) -> Iterator[None]:
        """The server with these settings, until the end of the block."""
        self._set(values)
        yield
        self._set(dict.fromkeys(values, "on"))

    def _set(self, values: dict[str, str]) -> None:
        with psycopg.connect(self.url.replace("//mqbroker:", "//postgres:"), autocommit=True) as connection:
            for name, value in values.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
            connection.execute("SELECT pg_reload_conf()")
            eventually(lambda: all(shown(connection, name) == value for name, value in values.items()))


def shown(connection: psycopg.Connection, name: str) -> str:
    """A setting as a session has it."""
    found = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    assert found is not None
    return str(found[0])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    server = Installed(tmp_path_factory.mktemp("installed"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def running(server: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("running"), server.url, os.environ["REDIS_URL"])
    running.prepare()
    with running:
        yield running
    assert "Traceback" not in running.log()


def names_in_the_code() -> set[str]:
    """The names of all sessions that the broker's programs open."""
    texts = (module.path.read_text() for module in modules(*APPS))
    return {name for text in texts for name in re.findall(r'"(mqbroker-[a-z]+)"', text)} - OTHERS


def exports(url: str) -> None:
    """Reads as both readers of an export do that have a session of libpq's."""
    conninfo = address.conninfo(server_url.database(url))
    with connections.connect(conninfo) as connection:
        connections.database(connection)
    list(arrow.batches(conninfo, "SELECT id::text FROM topic", pyarrow.schema([("id", pyarrow.string())])))


def drains(url: str, operator: Operator) -> None:
    """Has an outbox drained that lies in a database of the same server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE shop ENCODING 'UTF8' TEMPLATE template0")
    shop = url.rpartition("/")[0] + "/shop"
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute(table())
        assert operator.put("/v1/outboxes/shop", url=shop, topics=["orders"]).status == 201
        connection.execute("INSERT INTO mqbroker_outbox (topic, body) VALUES ('orders', 'from the shop')")


def test_no_session_of_the_broker_compiles_its_statements(server: Installed, running: RunningBroker) -> None:
    producer, consumer = Producer(running.client(), "shop"), Consumer(running.client(), "coupons")
    producer.begin("orders", b"committed", keys=["ключ"], properties={"née": "→"}).commit()
    producer.send("orders", rb"\later", delay_level=1)
    drains(server.url, Operator(running.url, API_KEY))
    received: list[bytes] = []
    eventually(lambda: len(arrived(consumer, received)) == 3, within_seconds=15)
    assert Operator(running.url, API_KEY).get("/v1/topics").status == 200
    exports(server.url)
    forks.run(commands.manage("doctor"), running.environment)
    stranger = Operator(running.url, None)
    assert stranger.get("/readyz").status == 200

    plans = server.plans()

    assert names_in_the_code() - plans.keys() == set()
    ours = {name: texts for name, texts in plans.items() if name.startswith("mqbroker")}
    assert {name for name, texts in ours.items() if not all("jit = 'off'" in text for text in texts)} == set()


def arrived(consumer: Consumer, received: list[bytes]) -> list[bytes]:
    """The bodies of all that came so far, which is acked."""
    deliveries = consumer.receive("orders", max_messages=10, wait_seconds=1)
    consumer.ack(deliveries)
    received.extend(delivery.message.body for delivery in deliveries)
    return received


def test_every_kind_of_session_has_what_the_form_of_a_result_depends_on(server: Installed) -> None:
    database = server_url.database(server.url)
    kinds = {
        "the message path": conninfo.conninfo("test", server.url),
        "Django": psycopg.conninfo.make_conninfo(server.url, options=database["OPTIONS"]["options"]),
        "the export": address.conninfo(database),
    }
    for kind, opened in kinds.items():
        with psycopg.connect(opened) as connection:
            assert {name: shown(connection, name).partition(",")[0] for name in session.PLAIN} == session.PLAIN, kind
    with psycopg.connect(server.url) as connection:
        connection.execute((source.ENTER_SOURCE.text % {"is_local": "true"}).encode())
        # An outbox's transaction says itself how it is isolated, and its session when it is idle for too long.
        for name in session.PLAIN.keys() - {"default_transaction_isolation", "idle_session_timeout"}:
            assert shown(connection, name).partition(",")[0] == session.PLAIN[name], name


def test_a_session_of_nobody_s_compiles(server: Installed) -> None:
    """The check sees what it is for."""
    with psycopg.connect(server.url, application_name="somebody") as connection:
        connection.execute("SELECT count(*) FROM pg_class").fetchone()

    assert "jit = 'off'" not in "".join(server.plans()["somebody"])


def examined(running: RunningBroker, **more: str) -> dict[str, str]:
    """What the doctor finds, and what mends it."""
    done = forks.run(commands.manage("doctor", "--json"), running.environment | more)
    return {found["what"]: found["mend"] for found in map(json.loads, done.stdout.splitlines())}


def test_a_setting_of_the_server_that_no_session_can_set_is_named_with_its_line(
    server: Installed, running: RunningBroker
) -> None:
    off = ["autovacuum", "track_activities", "track_counts"]
    with server.set_to(**dict.fromkeys(off, "off")):
        found = examined(running, MQBROKER_DATABASE_CONNECTIONS="60")

    expected = {
        f"{name} is off on the server": f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();" for name in off
    }
    assert found.items() >= expected.items()
    too_few = found["max_connections is 100 on the server"]
    assert re.fullmatch(r"ALTER SYSTEM SET max_connections = \d{3}; then restart the server", too_few)
    with server.set_to(fsync="off"):
        found = examined(running)
    assert found["The database cannot keep what it acknowledges"] == (
        "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();"
    )
    assert {what: mend for what, mend in examined(running).items() if "on the server" in what} == {
        "shared_buffers is 128MB on the server": "ALTER SYSTEM SET shared_buffers = '1GB'; then restart the server",
        "wal_buffers is 4MB on the server": "ALTER SYSTEM SET wal_buffers = '16MB'; then restart the server",
    }


def test_a_role_s_own_default_is_named_where_a_pooler_passes_no_settings_on(
    server: Installed, running: RunningBroker
) -> None:
    pooled = {"MQBROKER_DATABASE_POOLER": "session", "DIRECT_DATABASE_URL": server.url}
    assert forks.run(commands.manage("prepare"), running.environment | pooled).returncode == 0
    assert not [what for what in examined(running, **pooled) if what.startswith("Sessions have")]

    line = "ALTER ROLE mqbroker IN DATABASE mqbroker SET jit = '{}';"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(line.format("on").encode())
    found = examined(running, **pooled)

    mend = f"{line.format('off')} Then RECONNECT on the pooler's console"
    assert found["Sessions have jit = on, and the broker needs off"] == mend


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_in_another_encoding_is_refused_and_named(
    server: Installed, running: RunningBroker, encoding: str
) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {encoding} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0".encode())
    url = f"{server.url.rpartition('/')[0]}/{encoding.lower()}"

    done = forks.run(commands.manage("prepare"), running.environment | {"DATABASE_URL": url})

    assert done.returncode
    assert guards.ENCODED.format(encoding) in done.stderr
