"""Holds the statements of the message path to their indexes, also when the planner thinks that there is nothing.

A statement is planned once per connection and then kept. A plan made while a table was empty must still be right when
the table holds a million rows: one that walks it from end to end "because it has one row" would be quick in every
test, and stop a broker whose load comes back after a quiet night.
"""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from store.db.conninfo import SESSION
from store.db.session import as_options
from tests.broker import databases
from tests.house.sources import sources

APPS = ("store", "scheduling", "transactions", "delivery")
# Tables that grow with the load; those of topics, groups and segments are small.
TABLES = re.compile(
    r"(commit_log|consume_queue|progress|operation|half_message|timer|receipt|bundle|waiting|pace)(_\d+)?"
)
PARAMETER = re.compile(r"%\(([a-z_]+)\)[sb]")

WALKS = {
    "count_halves_of.sql": "counts what a move of topics would delete, before it begins",
    "count_receipts_of.sql": "counts what a move of topics would delete, before it begins",
    "count_timers_of.sql": "counts what a move of topics would delete, before it begins",
    "purge_halves.sql": "deletes within a fence, once; its session plans for that",
    "purge_receipts.sql": "deletes within a fence, once; its session plans for that",
    "count_in_flight.sql": "counts all deliveries in flight, for a scrape or a page of the console",
    "count_half_messages.sql": "counts all half messages of undecided transactions, for a scrape",
    "count_waiting.sql": "counts all undecided halves, for the figures of each minute",
    "delete_progress.sql": "deletes what is left of a deleted group, a batch at a time, and no request waits for it",
    "delete_left_waiting.sql": "deletes what is left of deleted groups and topics, and no request waits for it",
    "delete_spent_pace.sql": "deletes rates of values whose buckets are full, and no request waits for it",
    "sum_undecided.sql": "reads discarded halves up to a limit; of a namespace that may be all of them",
    "find_leftovers.sql": "scans the undecided halves once when a segment goes",
    "lock_old_bundles.sql": "scans the bundles once when a segment goes",
    "lock_old_receipts.sql": "scans the receipts once when a segment goes",
}
# Functions that only a user with a grant may have planned, and that read no table.
GRANTED = ("promote.sql",)
STATEMENTS = [
    source
    for source in sources("*.sql", *APPS)
    # The statements of outboxes are for the databases of producers.
    if "outboxes" not in source.path.parts
    and source.path.name not in (*WALKS, *GRANTED)
    and "EXPLAIN" not in source.text
    and not source.text.lstrip().startswith("SET")
]


@pytest.fixture(scope="module", params=["looked at", "not looked at"])
def planner(prepared: str, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """A session like those of the message path; its tables were empty when it last looked at them, if it did."""
    with (
        databases.copied(prepared) as database_url,
        psycopg.connect(database_url, autocommit=True, options=as_options(SESSION)) as connection,
    ):
        if connection.info.server_version < 160000:
            pytest.skip("PostgreSQL plans a statement without its values from 16 on")
        if request.param == "looked at":
            connection.execute("VACUUM ANALYZE")
        yield connection


def test_a_statement_walks_no_table_that_grows(planner: psycopg.Connection[Any]) -> None:
    found = {str(statement): list(walks(planned(planner, statement.text))) for statement in STATEMENTS}

    assert len(found) > 150
    assert {statement: walked for statement, walked in found.items() if walked} == {}


def test_the_search_for_walks_finds_one(planner: psycopg.Connection[Any]) -> None:
    statement = "SELECT r.nonce FROM receipt AS r INNER JOIN unnest(%(ids)s::bigint []) AS i ON r.nonce = i"

    assert list(walks(planned(planner, statement))) == ["Seq Scan of receipt"]


def planned(planner: psycopg.Connection[Any], text: str) -> dict[str, Any]:
    """The generic plan of a statement."""
    names = list(dict.fromkeys(PARAMETER.findall(text)))
    numbered = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", text).replace("%%", "%")
    row = planner.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {numbered}".encode()).fetchone()
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def walks(node: dict[str, Any], ended: bool = False) -> Iterator[str]:
    """The scans of a plan that go through a growing table without a condition of their index.

    One in the order of an index, under a LIMIT, ends after as many rows: that is `ended`.
    """
    if "Scan" in node["Node Type"] and TABLES.fullmatch(node.get("Relation Name", "")):
        bounded = ended and "Filter" not in node
        if not ({"Index Cond", "TID Cond", "Recheck Cond"} & node.keys() or bounded):
            yield f"{node['Node Type']} of {node['Relation Name']}"
    ended = node["Node Type"] == "Limit" or (ended and node["Node Type"] not in ("Sort", "Aggregate", "Hash"))
    for part in node.get("Plans", ()):
        yield from walks(part, ended)
