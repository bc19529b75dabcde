"""An installation of several cells: the control's database, others that are empty, and the commands of an operator."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from delivery.models import Subscription
from mqbroker.embedded import commands
from tests.broker import forks
from tests.broker.running import RunningBroker
from transactions.models import Endpoint

# The tables of which each cell has copies.
COPIED = ("topic", "producer_group", "endpoint", "consumer_group", "retry_queue", "subscription")
HEALTH = {*Endpoint.of_each_cell, *Subscription.of_each_cell}


class Installation:
    """The databases of one broker. `cells` are the URLs of those besides the control, by their names."""

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker
        self.cells: dict[str, str] = {}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What `manage.py cells` did."""
        return forks.run(commands.manage("cells", *words), self.broker.environment)

    def add(self, name: str, url: str) -> None:
        """Adds a cell."""
        done = self.run("add", name, url)
        assert done.returncode == 0, done.stderr
        self.cells[name] = url

    def refusal(self, *words: str) -> str:
        """The sentence with which a command was refused."""
        done = self.run(*words)
        assert done.returncode == 1, done.stdout
        [sentence] = done.stderr.splitlines()
        return sentence.removeprefix("CommandError: ")

    def state(self, name: str) -> str:
        """What `cells list` says of a cell."""
        done = self.run("list")
        assert done.returncode == 0, done.stderr
        return next(" ".join(line.split()[5:]) for line in done.stdout.splitlines() if line.split()[0] == name)

    def differences(self, name: str) -> Mapping[str, Any]:
        """The tables whose copies in a cell are not the control's rows."""
        ours, theirs = (rows_of(url) for url in (self.broker.database_url, self.cells[name]))
        return {table: (ours[table], theirs[table]) for table in COPIED if alike(ours[table]) != alike(theirs[table])}


def rows_of(url: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the tables that are copied."""
    with psycopg.connect(url, row_factory=dict_row) as session:
        return {
            table: sorted(session.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))), key=str)
            for table in COPIED
        }


def alike(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what each cell writes itself: the health of endpoints and subscriptions."""
    return [{name: value for name, value in row.items() if name not in HEALTH} for row in rows]


def identity_of(url: str) -> tuple[Any, ...]:
    """Which cell, at which epoch, of which installation a database is."""
    with psycopg.connect(url) as session:
        found = session.execute("SELECT cell_id, epoch, installation FROM cell_identity").fetchone()
        assert found is not None
        return found
