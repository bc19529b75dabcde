"""The characters of the actions' tests: operators of each role at the console of the running broker, and its audit."""

from collections.abc import Iterator

import pytest

from mqbroker.embedded import commands
from tests.broker import forks
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.console.operators import Operator, Page
from tests.control.audits import Audit

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


@pytest.fixture
def audit(broker: RunningBroker) -> Iterator[Audit]:
    with Audit.of_broker(broker) as audit:
        yield audit


def id_of(page: Page) -> str:
    """The id of the action whose page this is."""
    return page.address.rstrip("/").rpartition("/")[2]


def finished(operator: Operator, page: Page) -> Page:
    """The page of an action once it is done."""
    path = f"actions/{id_of(page)}/"
    eventually(lambda: operator.sees(path).figure("state") == "done", within_seconds=30)
    return operator.sees(path)
