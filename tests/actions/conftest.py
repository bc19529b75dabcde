"""The characters of the actions' tests: operators of each role at the console of the running broker, and its audit."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from embedded import commands
from tests.broker import forks
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.console.operators import Operator, Page

PASSWORD = "let me act"
USERS = f"""
from access import roles
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
# Hashed once: each hash takes 0.4 s.
password = make_password("{PASSWORD}")
for name, role in (("ada", "admin"), ("oda", "operator"), ("vic", "viewer")):
    roles.assign(User.objects.create(username=name, password=password), role, bodies=False)
"""


def made_at(broker: RunningBroker) -> dict[str, Operator]:
    """Makes the users of a broker's console and signs them in; by name."""
    words = commands.manage("shell", "--verbosity", "0", "--command", USERS)
    forks.run(words, broker.environment).check_returncode()
    return {name: Operator.signed_in(broker.url, name, PASSWORD) for name in ("ada", "oda", "vic")}


@pytest.fixture(scope="session")
def users(broker: RunningBroker) -> dict[str, Operator]:
    """The users of the console who are signed in, by name."""
    return made_at(broker)


@pytest.fixture
def ada(users: dict[str, Operator]) -> Operator:
    """An admin."""
    return users["ada"]


@pytest.fixture
def oda(users: dict[str, Operator]) -> Operator:
    """An operator."""
    return users["oda"]


@pytest.fixture
def vic(users: dict[str, Operator]) -> Operator:
    """A viewer."""
    return users["vic"]


class Audit:
    """The audit as PostgreSQL has it."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self.connection = connection

    def of(self, target: str) -> list[dict[str, Any]]:
        """The entries of a target, the first one first."""
        return self.connection.execute("SELECT * FROM audit_entry WHERE target = %s ORDER BY id", (target,)).fetchall()

    def by_action(self, action_id: str) -> list[dict[str, Any]]:
        """The results of an action."""
        query = "SELECT * FROM audit_entry WHERE action_id = %s ORDER BY id"
        return self.connection.execute(query, (action_id,)).fetchall()


@pytest.fixture
def audit(broker: RunningBroker) -> Iterator[Audit]:
    with psycopg.connect(broker.database_url, autocommit=True, row_factory=dict_row) as connection:
        yield Audit(connection)


def id_of(page: Page) -> str:
    """The id of the action whose page this is."""
    return page.address.rstrip("/").rpartition("/")[2]


def finished(operator: Operator, page: Page) -> Page:
    """The page of an action once it is done."""
    path = f"actions/{id_of(page)}/"
    eventually(lambda: operator.sees(path).figure("state") == "done", within_seconds=30)
    return operator.sees(path)
