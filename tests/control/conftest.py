"""The characters of the control plane's tests: a broker of their own, whose half messages are not checked."""

import os
from collections.abc import Iterator

import pytest

from mqbroker.embedded import commands
from tests.broker import characters, databases, forks
from tests.broker.running import API_KEY, RunningBroker
from tests.control.operators import Operator

PASSWORD = "let me see"
SET_PASSWORD = f"""
from django.contrib.auth.models import User
admin = User.objects.get(username="admin")
admin.set_password("{PASSWORD}")
admin.save()
"""
SETTINGS = {
    "MQBROKER_AUTO_CREATE_TOPICS": "true",
    "MQBROKER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
    "MQBROKER_SECRET_KEY": "a secret of these tests",
    # A half message stays undecided until a test ends it.
    "MQBROKER_TRANSACTION_TIMEOUT_SECONDS": "3600",
}


@pytest.fixture(scope="package")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Two web processes on one database; neither a worker nor beat. They end with this folder: one that idles polls."""
    folder = tmp_path_factory.mktemp("administered")
    redis_url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    with databases.copied(prepared) as database_url:
        running = RunningBroker(folder, database_url, redis_url, SETTINGS, webs=2, tasks=False)
        with running:
            yield running


@pytest.fixture(scope="package")
def password(broker: RunningBroker) -> str:
    """Of the console's user admin."""
    words = commands.manage("shell", "--verbosity", "0", "--command", SET_PASSWORD)
    forks.run(words, broker.environment).check_returncode()
    return PASSWORD


@pytest.fixture
def operator(broker: RunningBroker) -> Operator:
    """A caller with the first key."""
    return Operator(broker.url, API_KEY)


@pytest.fixture
def distant_operator(broker: RunningBroker) -> Operator:
    """The same at the other web process."""
    return Operator(broker.urls[1], API_KEY)


@pytest.fixture
def stranger(broker: RunningBroker) -> Operator:
    """A caller without a key."""
    return Operator(broker.url, None)


@pytest.fixture
def shop() -> str:
    """A producer group that no other test has."""
    return characters.name("shop")
