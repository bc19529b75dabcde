"""Promises of the console at scale: no page asks more statements because there are more topics, groups or messages."""

import json
import sys

import psycopg
import pytest

from tests.broker import databases, forks
from tests.console import scale
from tests.console.conftest import environment

# The overview asks most: it names what is out of order anywhere. A process reads it once for all tabs.
MOST_STATEMENTS = 49
FEW = {"messages": 100, "halves": 30, "topics": 3, "groups": 3}
MANY = {"messages": 5000, "halves": 3000, "topics": 60, "groups": 60}


def statements(prepared: str, sizes: dict[str, int]) -> dict[str, int]:
    """How many statements each page asks of a broker of these sizes, once all is there that is made at a first use.

    The broker has a database of its own and no other process: the web process of the other tests of the console would
    push what its subscriptions have to push, and a page asks more of a group that has retries.
    """
    program = [sys.executable, "-m", "tests.console.scale", "--times", "2"]
    with databases.copied(prepared) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            scale.fill(connection, **sizes)
        done = forks.run(program, environment(url))
        done.check_returncode()
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {one["status"] for one in found} == {200}, found
    return {one["page"]: one["statements"] for one in found}


@pytest.mark.timeout(300)
def test_no_page_asks_more_statements_because_there_is_more_of_anything(prepared: str) -> None:
    few, many = (statements(prepared, sizes) for sizes in (FEW, MANY))

    assert {page: (few[page], many[page]) for page in few if many[page] > few[page]} == {}
    assert {page: number for page, number in many.items() if number > MOST_STATEMENTS} == {}
