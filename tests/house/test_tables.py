"""Holds the statements and the models to the tables that PostgreSQL really has."""

import re
from collections.abc import Iterator

import psycopg
import pytest

from tests.broker.running import RunningBroker
from tests.house.sources import BROKER, sources
from tests.house.statements import COMMENT, PARAMETER, PLANNED, SETTING, owners
from tests.outboxes.conftest import table
from transactions.outboxes.models import IN_SOURCES

TABLES = """
SELECT c.relname FROM pg_class AS c
WHERE c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
"""
# What Django's own apps keep.
DJANGOS = re.compile(r"(auth|django)_")


# The one setting with a parameter takes the name of a snapshot that exists; the tests of the export use it.
STATEMENTS = [each for each in sources("*.sql", *BROKER) if each.path.name != "take_snapshot.sql"]


@pytest.fixture(scope="module")
def connection(broker: RunningBroker) -> Iterator[psycopg.Connection]:
    """A session in the broker's database, where an outbox lies as well."""
    with (
        psycopg.connect(broker.database_url, autocommit=True) as connection,
        connection.transaction(force_rollback=True),
    ):
        # The tables of a source, which the broker's own database may hold, too.
        connection.execute("CREATE SCHEMA source; SET LOCAL search_path = source, public")
        connection.execute(table())
        yield connection


def test_postgresql_understands_every_statement_with_its_tables_and_columns(connection: psycopg.Connection) -> None:
    assert [f"{each}: {complaint}" for each in STATEMENTS if (complaint := misunderstood(connection, each.text))] == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- Read.\nSELECT colour FROM topic WHERE id = %(id)s\n", 'column "colour" does not exist'),
        ("-- Read.\nSELECT id FROM topics\n", 'relation "topics" does not exist'),
        ("-- Set.\nSET lock_timeouts = 5\n", 'unrecognized configuration parameter "lock_timeouts"'),
    ],
)
def test_the_checker_catches_a_statement_that_postgresql_does_not_understand(
    connection: psycopg.Connection, text: str, complaint: str
) -> None:
    assert misunderstood(connection, text) == complaint


def misunderstood(connection: psycopg.Connection, text: str) -> str | None:
    """What PostgreSQL has against a statement: it is prepared, or where it is a setting made, and undone."""
    bare = COMMENT.sub("", text)
    names = sorted(set(PARAMETER.findall(bare)))
    numbered = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", PLANNED.sub("", bare)).replace("%%", "%")
    asked = numbered if SETTING.match(bare) else f"PREPARE checked AS {numbered}"
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(asked.encode())
            if not SETTING.match(bare):
                connection.execute("DEALLOCATE checked")
    except psycopg.Error as problem:
        return problem.diag.message_primary
    return None


def test_every_table_has_its_model_and_every_view_its_app(connection: psycopg.Connection) -> None:
    tables = {name for (name,) in connection.execute(TABLES) if not DJANGOS.match(name)}

    assert tables == set(owners()) - set(IN_SOURCES)
