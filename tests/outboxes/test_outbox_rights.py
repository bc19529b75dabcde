"""The roles of docs/sql.md: who writes and who drains have the rights that the page names, and no others."""

import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from outboxes.drain import SLOT_ROWS
from tests import packages
from tests.broker.polling import eventually
from tests.outboxes.conftest import PAGE, Shop

# What a role of the page is called there, and here.
BROKER = "mqbroker"
JDBC = Path("/usr/share/java/postgresql.jar")
WRITES = "GRANT INSERT, SELECT (id) ON mqbroker_outbox TO {}"


class Roles:
    """Two roles without a right in this database but those of the page."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.password = secrets.token_urlsafe(12)
        self.writer, self.drain = (f"{name}_{secrets.token_hex(4)}" for name in ("writer", "drain"))

    def __enter__(self) -> "Roles":
        grants = re.findall(r"^GRANT .* TO mqbroker;$", PAGE.read_text(), re.MULTILINE)
        assert len(grants) == 3
        with psycopg.connect(self._url, user="postgres", autocommit=True) as session:
            for role in (self.writer, self.drain):
                made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
                session.execute(made.format(sql.Identifier(role), sql.Literal(self.password)))
            # An operator may have set it; a drain's transactions have to see what was committed last.
            isolated = sql.SQL("ALTER ROLE {} SET default_transaction_isolation TO 'repeatable read'")
            session.execute(isolated.format(sql.Identifier(self.drain)))
            session.execute(sql.SQL(WRITES).format(sql.Identifier(self.writer)))
            for grant in grants:
                session.execute(grant.replace(f"TO {BROKER}", f"TO {self.drain}").encode())
        return self

    def __exit__(self, *_: object) -> None:
        with psycopg.connect(self._url, user="postgres", autocommit=True) as session:
            for role in (self.writer, self.drain):
                session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])
                session.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))

    def url(self, role: str) -> str:
        """Where the database is, for a role."""
        parts = urlsplit(self._url)
        place = f"{role}:{self.password}@{parts.hostname}:{parts.port}"
        return parts._replace(netloc=place).geturl()


@pytest.fixture
def roles(shop: Shop) -> Iterator[Roles]:
    """The roles of the shop's database."""
    with Roles(shop.url) as made:
        shop.register(url=made.url(made.drain))
        yield made


def test_the_rights_of_the_page_are_enough_to_send_to_drain_and_to_set_apart(shop: Shop, roles: Roles) -> None:
    with psycopg.connect(roles.url(roles.writer)) as session:
        session.execute("SELECT mq_send(%s, 'by the function', sharding_key => 'seven')", [shop.topic])
        session.execute("INSERT INTO mqbroker_outbox (topic, body) VALUES (%s, 'by INSERT')", [shop.topic])
        session.execute("SELECT mq_send('another', 'refused')")

    assert sorted(message["body"] for message in shop.receives_all(2)) == ["by INSERT", "by the function"]
    eventually(lambda: shop.outbox["refused"] == 1)
    assert shop.outbox["failure"] is None


def test_they_are_enough_to_turn_the_partitions(shop: Shop, roles: Roles) -> None:
    with psycopg.connect(roles.url(roles.writer)) as session:
        count = SLOT_ROWS + 1000
        rows = "INSERT INTO mqbroker_outbox (topic, body) SELECT %s, 'x' FROM generate_series(1, %s)"
        session.execute(rows, [shop.topic, count])

    def turned() -> bool:
        with shop.session() as session:
            [state] = session.execute("SELECT slot FROM mqbroker_outbox_state").fetchall()
            [size] = session.execute("SELECT pg_relation_size('mqbroker_outbox_0') AS bytes").fetchall()
        return bool(state["slot"] == 1 and size["bytes"] == 0)

    eventually(lambda: shop.outbox["drained"] == count, within_seconds=60)
    eventually(turned, within_seconds=60)
    assert shop.outbox["failure"] is None


@pytest.mark.parametrize(
    "statement",
    ["SELECT body FROM mqbroker_outbox", "DELETE FROM mqbroker_outbox", "UPDATE mqbroker_outbox_state SET slot = 1"],
)
def test_who_writes_may_do_nothing_else(roles: Roles, statement: str) -> None:
    with psycopg.connect(roles.url(roles.writer)) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute(statement.encode())


def test_the_program_of_the_page_sends_by_jdbc(shop: Shop, roles: Roles, tmp_path: Path) -> None:
    if not JDBC.exists() or shutil.which("java") is None:
        packages.skip_for_want_of("libpostgresql-jdbc-java", "PostgreSQL's JDBC driver")
    [program] = re.findall(r"^```java\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    parts = urlsplit(shop.url)
    url = f"jdbc:postgresql://{parts.hostname}:{parts.port}{parts.path}?user={roles.writer}&password={roles.password}"
    (tmp_path / "Shop.java").write_text(program.replace('"orders"', f'"{shop.topic}"'))

    words = ["java", "-cp", str(JDBC), str(tmp_path / "Shop.java"), url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    assert [message["body"] for message in shop.receives_all(1)] == ['{"article": 7}']
