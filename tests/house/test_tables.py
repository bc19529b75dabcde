"""Holds the statements and the models to the tables that PostgreSQL really has."""

import re
from collections.abc import Iterator

import psycopg
import pytest

from tests.broker.running import RunningBroker
from tests.house.sources import APPS, Source, sources
from tests.house.statements import COMMENT, PARAMETER, SETTING, owners

TABLES = """
SELECT c.relname FROM pg_class AS c
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
"""
# A plan is asked for in front of the statement it is about.
PLANNED = re.compile(r"\s*EXPLAIN \([A-Z ,]+\)")
# What Django's own apps keep.
DJANGOS = re.compile(r"(auth|django)_")


@pytest.fixture(scope="module")
def connection(broker: RunningBroker) -> Iterator[psycopg.Connection]:
    """A session in the broker's database."""
    with psycopg.connect(broker.database_url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("statement", sources("*.sql", *APPS), ids=str)
def test_postgresql_understands_a_statement_with_its_tables_and_columns(
    connection: psycopg.Connection, statement: Source
) -> None:
    bare = COMMENT.sub("", statement.text)
    if SETTING.match(bare):
        return
    names = sorted(set(PARAMETER.findall(bare)))
    numbered = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", PLANNED.sub("", bare)).replace("%%", "%")

    connection.execute(f"PREPARE judged AS {numbered}".encode())
    connection.execute("DEALLOCATE judged")


def test_every_table_has_its_model(connection: psycopg.Connection) -> None:
    tables = {name for (name,) in connection.execute(TABLES) if not DJANGOS.match(name)}

    assert tables == set(owners())
