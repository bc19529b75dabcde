"""Secrets of endpoints and subscriptions are sealed in the database, under keys that it does not hold."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from django.conf import LazySettings
from django.core.checks import WARNING, run_checks
from standardwebhooks import Webhook

from mqbroker.embedded import commands
from tests.broker import databases, forks
from tests.broker.endpoints import Asked, ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.control.conftest import SETTINGS
from tests.control.operators import Operator

OLD, NEW, OTHER = ("old" * 16, "new" * 16, "other" * 8)
STORED = "SELECT secret, previous_secret FROM endpoint UNION ALL SELECT secret, previous_secret FROM subscription"
GROUP, TOPIC = "shop", "orders"
ENDPOINTS = f"/v1/producer-groups/{GROUP}/endpoints"
REFUSED = (
    "The secrets of 2 endpoints and subscriptions are sealed under a key that is not in MQBROKER_SECRETS_KEYS: add "
    "that key to the end of the list. If it is lost, `manage.py reseal --replace-unreadable` gives each of them a new "
    "secret."
)


class Installation:
    """One database, and the processes that are started on it with one list of keys after another."""

    def __init__(self, folder: Path, database_url: str, endpoint: ProducerEndpoint) -> None:
        self.folder = folder
        self.database_url = database_url
        self.endpoint = endpoint

    def running(self, *keys: str) -> RunningBroker:
        """A broker with these keys, not started."""
        settings = SETTINGS | {"MQBROKER_SECRETS_KEYS": ",".join(keys)}
        redis_url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
        return RunningBroker(self.folder, self.database_url, redis_url, settings, tasks=False)

    def manages(self, *words: str, keys: tuple[str, ...]) -> tuple[int, str]:
        """The exit code of a management command, and what it says."""
        environment = self.running(*keys).environment
        done = forks.run(commands.manage(*words), environment)
        return done.returncode, (done.stdout + done.stderr).strip()

    def stored(self) -> list[str]:
        """Every secret as the database holds it."""
        with psycopg.connect(self.database_url) as connection:
            rows = connection.execute(STORED).fetchall()
        return [secret for row in rows for secret in row if secret is not None]

    def registers(self, broker: RunningBroker) -> tuple[str, str, str]:
        """An endpoint whose secret was rotated, and a subscription: both secrets of the first, that of the second."""
        operator = Operator(broker.url, API_KEY)
        operator.put(f"/v1/producer-groups/{GROUP}")
        made = operator.make(ENDPOINTS, url=self.endpoint.url).document
        rotated = operator.make(f"{ENDPOINTS}/{made['id']}/rotate-secret").document
        # The web process, which has no worker beside it, leaves others the time of a call before it pushes.
        push = {"group": "coupons", "topic": TOPIC, "url": self.endpoint.url, "timeout_seconds": 1}
        operator.put(f"/v1/topics/{TOPIC}")
        pushed = operator.put("/v1/subscriptions/push", **push)
        return made["secret"], rotated["secret"], pushed.document["secret"]

    def calls(self, broker: RunningBroker) -> tuple[Asked, Asked]:
        """The check of a half message, and the push of a message, as they arrive."""
        self.endpoint.asked.clear()
        self._causes_a_check(broker)
        Operator(broker.url, API_KEY).make("/v1/messages", topic=TOPIC, body="order")
        return self._arrived("transaction.check"), self._arrived("messages.deliver")

    def checks(self, broker: RunningBroker) -> Asked:
        """The check of a half message: it arrives long before a push, which the web process leaves to others first."""
        self.endpoint.asked.clear()
        self._causes_a_check(broker)
        return self._arrived("transaction.check")

    @staticmethod
    def _causes_a_check(broker: RunningBroker) -> None:
        operator = Operator(broker.url, API_KEY)
        begun = operator.make("/v1/transactions", topic=TOPIC, body="order", producer_group=GROUP).document
        operator.make(f"/v1/transactions/{begun['transaction_id']}/check")

    def _arrived(self, kind: str) -> Asked:
        def found() -> list[Asked]:
            return [asked for asked in list(self.endpoint.asked) if asked.document["type"] == kind]

        eventually(found, within_seconds=60)
        return found()[0]


@dataclass(frozen=True)
class Registered:
    """A database in which an endpoint and a subscription were registered under the key OLD.

    `first`, `second` and `pushed` are the secrets of the endpoint, before and after its rotation, and of the
    subscription; `check` and `push` are the calls that a broker with that key made, and `log` is what it said.
    """

    database_url: str
    first: str
    second: str
    pushed: str
    check: Asked
    push: Asked
    log: str


@pytest.fixture(scope="module")
def server() -> Iterator[ProducerEndpoint]:
    """Where checks and pushes arrive."""
    with ProducerEndpoint() as server:
        server.replies(states("COMMIT"))
        yield server


@pytest.fixture(scope="module")
def registered(
    prepared: str, tmp_path_factory: pytest.TempPathFactory, server: ProducerEndpoint
) -> Iterator[Registered]:
    """What the tests begin with, each on a copy."""
    with databases.copied(prepared) as database_url:
        installation = Installation(tmp_path_factory.mktemp("registered"), database_url, server)
        with installation.running(OLD) as broker:
            secrets = installation.registers(broker)
            calls = installation.calls(broker)
            log = broker.log()
        yield Registered(database_url, *secrets, *calls, log)


@pytest.fixture
def installation(registered: Registered, tmp_path: Path, server: ProducerEndpoint) -> Iterator[Installation]:
    """An installation with an endpoint and a subscription, registered under the key OLD; nothing of it runs."""
    with databases.copied(registered.database_url) as database_url:
        yield Installation(tmp_path, database_url, server)


@contextmanager
def new_installation(prepared: str, folder: Path, server: ProducerEndpoint) -> Iterator[Installation]:
    """An installation without endpoints and subscriptions."""
    with databases.copied(prepared) as database_url:
        yield Installation(folder, database_url, server)


def signs(asked: Asked, secret: str) -> bool:
    """Whether a call bears a signature by this secret; raises when it does not."""
    headers = {name.lower(): value for name, value in asked.headers.items()}
    return bool(Webhook(secret).verify(asked.body, headers))


def test_a_secret_is_sealed_in_the_database_and_signs(registered: Registered, installation: Installation) -> None:
    secrets = (registered.first, registered.second, registered.pushed)
    stored = installation.stored()

    assert len(stored) == 3
    assert not [secret for secret in stored if secret.startswith("whsec_") or secret in secrets]
    assert signs(registered.check, registered.first)
    assert signs(registered.check, registered.second)
    assert signs(registered.push, registered.pushed)
    assert not [secret for secret in (*secrets, *stored, OLD) if secret in registered.log]


def test_plain_secrets_are_sealed_by_prepare_and_go_on_to_sign(
    prepared: str, tmp_path: Path, server: ProducerEndpoint
) -> None:
    with new_installation(prepared, tmp_path, server) as installation:
        with installation.running() as broker:
            first, second, pushed = installation.registers(broker)
        assert sorted(installation.stored()) == sorted([first, second, pushed])

        installation.running(OLD).prepare()

        assert not [secret for secret in installation.stored() if secret.startswith("whsec_")]
        with installation.running(OLD) as broker:
            check, push = installation.calls(broker)
    assert signs(check, second)
    assert signs(push, pushed)


def test_after_a_rotation_the_old_key_is_not_needed(registered: Registered, installation: Installation) -> None:
    assert installation.manages("reseal", keys=(NEW, OLD)) == (0, "3 secrets resealed, 0 replaced.")
    assert installation.manages("reseal", keys=(NEW, OLD)) == (0, "0 secrets resealed, 0 replaced.")

    with installation.running(NEW) as broker:
        check, push = installation.calls(broker)
    assert signs(check, registered.second)
    assert signs(push, registered.pushed)


def test_no_process_starts_without_the_key_of_its_secrets(installation: Installation) -> None:
    other = installation.running(OTHER)

    started = [forks.run(child.command, other.environment) for child in (other.webs[0], other.worker)]
    prepared = installation.manages("prepare", keys=(OTHER,))

    assert all(one.returncode for one in started)
    assert [REFUSED in one.stderr for one in started] == [True, True]
    assert (prepared[0], REFUSED in prepared[1]) == (1, True)
    assert OTHER not in "".join(one.stderr for one in started)


def test_lost_secrets_are_replaced(installation: Installation) -> None:
    before = installation.stored()
    refused = installation.manages("reseal", keys=(OTHER,))

    replaced = installation.manages("reseal", "--replace-unreadable", keys=(OTHER,))

    assert (refused[0], "use --replace-unreadable" in refused[1]) == (1, True)
    assert replaced == (0, "0 secrets resealed, 2 replaced.")
    assert not set(before) & set(installation.stored())
    with installation.running(OTHER) as broker:
        operator = Operator(broker.url, API_KEY)
        [found] = operator.reads(ENDPOINTS)["results"]
        rotated = operator.make(f"{ENDPOINTS}/{found['id']}/rotate-secret").document
        check = installation.checks(broker)
    assert signs(check, rotated["secret"])


def test_a_deployment_without_a_key_is_warned(settings: LazySettings) -> None:
    said = []
    for keys in ((), (OLD,)):
        settings.SECRETS_KEYS = keys
        said.append([one for one in run_checks(include_deployment_checks=True) if one.id == "mqbroker.W001"])

    assert [one.msg.partition(":")[0] for one in said[0]] == ["MQBROKER_SECRETS_KEYS is empty"]
    assert [one.is_serious(WARNING) for one in said[0]] == [True]
    assert said[1] == []


def test_a_key_that_is_too_short_stops_the_start_and_is_not_repeated(installation: Installation) -> None:
    code, said = installation.manages("check", keys=(OLD, "short-key"))

    assert code == 1
    assert said.endswith(
        "MQBROKER_SECRETS_KEYS has a key that is too short: give random texts of 32 characters or more, between commas."
    )
    assert "short-key" not in said
