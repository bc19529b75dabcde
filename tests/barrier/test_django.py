"""Django: messages go with the transaction, and whatever happens to it happens to them."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mqbroker_client import Consumer

from mqbroker.embedded.commands import ROOT
from tests.barrier import places, processes
from tests.barrier.conftest import make_barrier
from tests.barrier.places import Place
from tests.broker import databases, forks
from tests.broker.characters import bodies, name
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended, received_until_empty


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a SQLite database as a migration leaves it."""
    folder = tmp_path_factory.mktemp("migrated")
    make_barrier(places.sqlite(folder), "django")
    return folder


@pytest.fixture
def small_shop(migrated: Path, tmp_path: Path) -> Place:
    """A database with the tables of a Django project, for tests to which the kind of database makes no difference."""
    for file in migrated.iterdir():
        shutil.copy(file, tmp_path)
    return places.of_file(tmp_path)


@pytest.fixture(scope="module")
def migrated_database() -> Iterator[str]:
    """The URL of a database of PostgreSQL as a migration leaves it, which is copied and never used itself."""
    with places.postgresql("read committed") as made:
        make_barrier(made, "django")
        yield made.url


@pytest.fixture(params=["postgresql", "sqlite"])
def shop(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A database with the tables of a Django project."""
    if request.param == "sqlite":
        yield request.getfixturevalue("small_shop")
        return
    with databases.copied(request.getfixturevalue("migrated_database")) as url:
        yield places.of_database(url, "read committed")


def told_by(place: Place, broker_url: str, story: str, **options: Any) -> Any:
    """What a story of `django_story.py` comes to."""
    words = [sys.executable, "-m", "tests.barrier.django_story", place.words(), broker_url, story, json.dumps(options)]
    done = forks.run(words, processes.environment())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def command(place: Place, broker_url: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`manage.py mqbroker …` of the project, as it ended."""
    given = [sys.executable, "-m", "tests.barrier.site", place.words(), broker_url, "mqbroker", *words]
    return forks.run(given, processes.environment())


def received(broker: RunningBroker, place: Place) -> list[bytes]:
    return sorted(bodies(received_until_empty(Consumer(broker.client(), name("coupons")), place.topic)))


def test_a_savepoint_that_is_rolled_back_takes_its_messages_along(shop: Place, broker: RunningBroker) -> None:
    assert told_by(shop, broker.url, "savepoints") == ["outer"]
    assert received(broker, shop) == [b"after a rollback", b"outer", b'{"order":1}']


@pytest.mark.parametrize("shop", ["postgresql"], indirect=True)  # Django's SQLite has no transaction without autocommit
def test_a_program_that_commits_by_itself_sends_each_message_once(shop: Place, broker: RunningBroker) -> None:
    assert told_by(shop, broker.url, "without_autocommit") == ["first", "second"]
    assert received(broker, shop) == [b"first", b"second"]


def test_messages_of_one_transaction_are_ended_together(small_shop: Place, broker: RunningBroker) -> None:
    told_by(small_shop, broker.url, "savepoints")

    deliveries = received_until_empty(Consumer(broker.client(), name("coupons")), small_shop.topic)
    by_body = {delivery.body: delivery.message.transaction_id for delivery in deliveries}
    assert by_body[b"outer"] == by_body[b'{"order":1}'] != by_body[b"after a rollback"]


def test_a_message_outside_of_a_transaction_is_refused(small_shop: Place, broker: RunningBroker) -> None:
    assert "call send within transaction.atomic(using='default')" in told_by(small_shop, broker.url, "outside")


def test_a_row_that_would_commit_by_itself_is_refused(shop: Place, broker: RunningBroker) -> None:
    assert "begin a transaction first, by transaction.atomic(using='default')" in told_by(
        shop, broker.url, "a_row_by_itself"
    )
    assert shop.run("SELECT count(*) FROM mqbroker_barrier") == [(1,)]


def test_a_handler_that_no_commit_would_follow_is_refused(shop: Place, broker: RunningBroker) -> None:
    refusal, runs = told_by(shop, broker.url, "a_handler_without_a_commit", AUTOCOMMIT=False)

    assert "AUTOCOMMIT of the database 'default' is off" in refusal
    assert runs == 0


@pytest.mark.parametrize("shop", ["postgresql"], indirect=True)  # Django pools connections to PostgreSQL alone
def test_a_check_does_not_wait_for_a_connection_of_the_programs_pool(shop: Place) -> None:
    pool = {"min_size": 1, "max_size": 1, "timeout": 3}

    state, remark, took = told_by(shop, "http://127.0.0.1:1", "checked_within_a_request", POOL=pool)

    assert (state, remark) == ("ROLLBACK", None)
    assert took < at_this_load(0.5)


def test_a_broker_error_rolls_back_and_the_connection_goes_on(shop: Place, broker: RunningBroker) -> None:
    assert told_by(shop, broker.url, "broker_errors") == [["TopicIllegal"], [0], ["by itself", "next"]]


def test_a_broker_that_is_away_rolls_back(small_shop: Place) -> None:
    found = told_by(small_shop, "http://127.0.0.1:1", "broker_errors")

    assert found == [["Unreachable"], [0], ["by itself", "next"]]


def test_a_request_is_a_transaction_under_atomic_requests(shop: Place, broker: RunningBroker) -> None:
    assert told_by(shop, broker.url, "a_request") == [[200, 500, 500], ["paid"]]
    assert received(broker, shop) == [b"paid"]


def test_an_error_of_the_database_sends_nothing(small_shop: Place, broker: RunningBroker) -> None:
    assert told_by(small_shop, broker.url, "a_constraint") == []
    assert small_shop.run("SELECT count(*) FROM mqbroker_barrier") == [(0,)]


def test_a_test_case_captures_messages_and_sends_them_when_it_executes_them(
    small_shop: Place, broker: RunningBroker
) -> None:
    assert told_by(small_shop, broker.url, "captured") == [["captured, not sent"], []]
    assert received(broker, small_shop) == [b"captured and sent"]


def lost(place: Place, broker: RunningBroker, folder: Path) -> tuple[Any, Any]:
    """The ids of two transactions: one whose process was killed after the COMMIT, one before."""
    with processes.program("django", place, broker, folder) as program:
        with program.process() as process:
            process.order()
            committed = process.until_half()
            process.go_on()
            process.until("ending")
            process.kill()
        with program.process() as process:
            process.order()
            killed = process.until_half()
            process.kill()
    return committed, killed


def test_a_scheduler_answers_what_is_due(small_shop: Place, broker: RunningBroker, tmp_path: Path) -> None:
    committed, killed = lost(small_shop, broker, tmp_path)

    def both() -> bool:
        told_by(small_shop, broker.url, "checks")
        return all(ended(broker.wire(), one) for one in (committed, killed))

    eventually(both)
    found = [ended(broker.wire(), one) for one in (committed, killed)]
    assert [one and one["state"] for one in found] == ["COMMITTED", "ROLLED_BACK"]


def test_the_command_answers_checks_until_it_is_stopped(
    small_shop: Place, broker: RunningBroker, tmp_path: Path
) -> None:
    committed, killed = lost(small_shop, broker, tmp_path)
    words = [sys.executable, "-m", "tests.barrier.site", small_shop.words(), broker.url, "mqbroker", "checks"]
    with subprocess.Popen(words, env=processes.environment(), cwd=ROOT) as command:
        found = [eventually(partial(ended, broker.wire(), one)) for one in (committed, killed)]
        command.send_signal(signal.SIGTERM)
        command.wait(120)

    assert [one["state"] for one in found] == ["COMMITTED", "ROLLED_BACK"]
    assert command.returncode == 0


@pytest.mark.parametrize(
    ("topic", "handler", "complaint"),
    [
        ("orders", "no.such.handler", "CommandError: There is no handler no.such.handler: No module named 'no'\n"),
        ("no topic", "builtins.print", "CommandError: topic_illegal (422): topic 'no topic' is not a valid topic name"),
    ],
)
def test_a_consumer_that_cannot_run_says_why(
    small_shop: Place, broker: RunningBroker, topic: str, handler: str, complaint: str
) -> None:
    done = command(small_shop, broker.url, "consume", topic, small_shop.group, handler)

    assert done.returncode == 1
    assert done.stderr.startswith(complaint)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"PRODUCER_GROUPS": "x"}, "MQBROKER has no key PRODUCER_GROUPS: its keys are URL, API_KEY, PRODUCER_GROUP"),
        ({"URL": ""}, "MQBROKER needs URL: its keys are"),
        ({"ON_UNAVAILABLE": "kept"}, 'ON_UNAVAILABLE is "fail" or "keep", not \'kept\''),
    ],
)
def test_a_setting_that_is_wrong_is_named(
    small_shop: Place, given: dict[str, str], complaint: str, broker: RunningBroker
) -> None:
    with pytest.raises(AssertionError) as raised:
        told_by(small_shop, broker.url, "savepoints", **given)

    assert complaint in str(raised.value)


def test_the_migration_is_what_the_model_says(small_shop: Place) -> None:
    words = [sys.executable, "-m", "tests.barrier.site", small_shop.words(), "http://127.0.0.1:1"]
    done = forks.run([*words, "makemigrations", "--check", "--dry-run"], processes.environment())

    assert done.returncode == 0, done.stdout
