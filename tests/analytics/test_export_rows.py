"""Holds the type of every row that the export reads by SQL to what PostgreSQL says that the statement returns."""

import psycopg

from analytics import closed, connections
from analytics.files import remote, verify
from analytics.readers import counts
from store.db.statements import NoRow, Statement
from tests.store.test_rows import breaches_of


def test_a_statement_of_the_export_returns_the_row_that_it_is_typed_by(database: str) -> None:
    found = [
        value
        for module in (closed, connections, counts, remote, verify)
        for value in vars(module).values()
        if isinstance(value, Statement)
    ]
    typed = [statement for statement in found if statement.one or statement.row is not NoRow]

    with psycopg.connect(database, autocommit=True) as reader:
        wrong = [breach for statement in typed for breach in breaches_of(reader, statement)]

    assert len(typed) == 14
    assert wrong == []
