"""Promises of the console at scale: no page asks more statements because there are more topics, groups or messages."""

import json
import subprocess
import sys

import pytest

from tests.console import scale
from tests.console.conftest import ROOT, environment
from tests.console.rows import Broker

MOST_STATEMENTS = 30
# What a page asks also follows what it shows: of a group that has read nothing of a topic, two statements ask the
# bounds of its queues. One statement for each of 57 more topics or groups is far above.
MOST_MORE = 3


def statements(database: str) -> dict[str, int]:
    """How many statements each page asks, once all is there that is made at a first use."""
    program = [sys.executable, "-m", "tests.console.scale", "--user", "ada"]
    done = subprocess.run(program, cwd=ROOT, env=environment(database), check=True, capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {one["status"] for one in found} == {200}, found
    return {one["page"]: one["statements"] for one in found}


@pytest.mark.timeout(300)
def test_no_page_asks_more_statements_because_there_is_more_of_anything(database: str, broker: Broker) -> None:
    clear(broker)
    scale.fill(broker.connection, messages=100, halves=30, topics=3, groups=3)
    few = statements(database)
    clear(broker)
    scale.fill(broker.connection, messages=5000, halves=3000, topics=60, groups=60)

    many = statements(database)

    assert {page: (few[page], many[page]) for page in few if many[page] > few[page] + MOST_MORE} == {}
    assert {page: number for page, number in many.items() if number > MOST_STATEMENTS} == {}


def clear(broker: Broker) -> None:
    """Leaves nothing of earlier tests, and gives what is filled in the same ids again."""
    broker.connection.execute(f"TRUNCATE {', '.join(TABLES)} RESTART IDENTITY")
    broker.connection.execute("DELETE FROM topic WHERE permission <> 'r'")


TABLES = (
    *("commit_log", "consume_queue", "progress", "operation", "half_message"),
    *("endpoint", "producer_group", "consumer_group", "subscription"),
)
