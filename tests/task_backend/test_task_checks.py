"""`manage.py check` names each wrong setting of tasks and messages, and says what is right."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.barrier import places
from tests.broker.running import RunningBroker
from tests.task_backend.conftest import Project, migrated

LONG = "p" * 125


@pytest.fixture(scope="module")
def project(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose program checks other settings in turn."""
    folder = tmp_path_factory.mktemp("project")
    with migrated(broker, places.sqlite(folder).url, folder) as project:
        yield project


def of_backend(**params: Any) -> dict[str, Any]:
    """The settings with a further task backend, `x`."""
    return {"tasks": {"x": params}}


def of_options(**options: Any) -> dict[str, Any]:
    return of_backend(OPTIONS=options)


def of_broker(**keys: Any) -> dict[str, Any]:
    """The settings with other keys of MQBROKER."""
    return {"mqbroker": keys}


def test_settings_that_fit_are_not_reported(project: Project) -> None:
    assert project.tell("checked", {}, False) == []
    assert project.tell("checked", of_backend(QUEUES=[], OPTIONS={"MAX_RETRIES": 0}), False) == []


@pytest.mark.parametrize(
    ("given", "finding"),
    [
        (of_options(RETRIES=1), "OPTIONS of the task backend x has no key RETRIES: its keys are DATABASE, OUTSIDE, "),
        (of_backend(OPTIONS=["ATOMIC"]), "OPTIONS of the task backend x is a dictionary, not ['ATOMIC']."),
        (of_options(OUTSIDE="raise"), 'OPTIONS of the task backend x has wrong values: OUTSIDE is "send" or "refuse"'),
        (of_options(ATOMIC="no"), "ATOMIC is True or False, not 'no'."),
        (of_options(MAX_RETRIES=-1), "MAX_RETRIES is a whole number from 0 to 1,000, not -1."),
        (of_options(MAX_RETRIES="3"), "MAX_RETRIES is a whole number from 0 to 1,000, not '3'."),
        (of_options(MAX_RETRIES=True), "MAX_RETRIES is a whole number from 0 to 1,000, not True."),
        (of_options(TOPIC_PREFIX=None), "TOPIC_PREFIX is a text, not None."),
        (of_options(DATABASE=["other"]), "DATABASE is an alias of DATABASES, not ['other']."),
        (of_options(DATABASE="nowhere"), "(mqbroker.E004) The task backend x names the database nowhere: MQBROKER has"),
        (of_backend(QUEUES="mail"), "QUEUES of the task backend x is a list of names, not 'mail'."),
        (of_backend(QUEUES=["to mail"]), "(mqbroker.E005) The task backend x would need a topic 'tasks-to mail_high'"),
        (of_options(TOPIC_PREFIX=LONG), f"(mqbroker.E005) The task backend x would need a topic '{LONG}default_high'"),
        (
            {"databases": {"other": {"AUTOCOMMIT": False}}},
            "(mqbroker.E006) The task backend other runs tasks in transactions of the database other, whose AUTOCOMMIT",
        ),
        ({"without": "mqbroker_client.contrib.django"}, "(mqbroker.E003) The task backend default needs 'mqbroker_cl"),
        ({"instead": None}, "(mqbroker.E001) MQBROKER needs URL, needs API_KEY, needs PRODUCER_GROUP: its keys are"),
        ({"instead": "http://127.0.0.1"}, "(mqbroker.E001) MQBROKER is a dictionary, not 'http://127.0.0.1'."),
        (of_broker(TIMEOUT=3), "(mqbroker.E001) MQBROKER has no key TIMEOUT: its keys are URL,"),
        (of_broker(URL="127.0.0.1:8000"), "MQBROKER has wrong values: URL: the broker's address is http://"),
        (of_broker(URL="http://"), "URL: the broker's address is http://"),
        (of_broker(URL=8000), "URL is the broker's address or a list of addresses, not 8000."),
        (of_broker(API_KEY="mq_1\n"), "API_KEY is a text without blanks and line breaks."),
        (of_broker(API_KEY=["mq_1"]), "API_KEY is a text without blanks and line breaks."),
        (
            of_broker(PRODUCER_GROUP="the shop"),
            "PRODUCER_GROUP is at most 127 letters, digits, _, - and %, not 'the sh",
        ),
        (
            of_broker(PRODUCER_GROUP=LONG),
            "PRODUCER_GROUP with the alias other is at most 127 letters, digits, _, - and",
        ),
        (of_broker(DATABASE=None), "DATABASE is an alias of DATABASES, not None."),
        (of_broker(DATABASE="els"), "(mqbroker.E002) MQBROKER names the database els: DATABASES has default, other."),
        (of_broker(MORE_DATABASES="other"), "MORE_DATABASES is a list of aliases, not 'other'."),
        (of_broker(MORE_DATABASES=["default"]), "DATABASE and MORE_DATABASES name an alias twice: default, default."),
        (of_broker(MORE_DATABASES=["else"]), "(mqbroker.E002) MQBROKER names the database else: DATABASES has default"),
        (of_broker(ON_UNAVAILABLE="wait"), 'ON_UNAVAILABLE is "fail" or "keep", not \'wait\'.'),
        (of_broker(CHECK_SECRETS=3), "CHECK_SECRETS is a list of secrets."),
        (of_broker(CHECK_SECRETS=["whsec_?"]), "a secret of CHECK_SECRETS is whsec_ and base64"),
    ],
)
def test_a_wrong_setting_is_named(project: Project, given: dict[str, Any], finding: str) -> None:
    found = project.tell("checked", given, False)

    assert [each for each in found if finding in each], found


def test_django_without_tasks_of_its_own_needs_the_app_of_the_package(project: Project) -> None:
    needs_app = int(project.manage("version").stdout.partition(".")[0]) < 6

    found = project.tell("checked", {"without": "django_tasks"}, False)

    assert len(found) == needs_app
    assert all("(mqbroker.E007) TASKS has a backend of mqbroker, and INSTALLED_APPS lacks" in each for each in found)


def test_the_broker_of_tests_is_reported_before_a_deployment(project: Project) -> None:
    given = of_broker(URL="memory:")

    deployed, by_default = project.tell("checked", given, True), project.tell("checked", given, False)

    assert [each for each in deployed if "(mqbroker.W004) MQBROKER has the URL memory:" in each]
    assert by_default == []


def test_a_table_that_a_router_has_left_out_is_named(project: Project) -> None:
    with closing(sqlite3.connect(project.databases["other"].removeprefix("sqlite://"))) as session:
        session.execute("ALTER TABLE mqbroker_task RENAME TO elsewhere")
        [found] = project.tell("checked", {}, False)
        session.execute("ALTER TABLE elsewhere RENAME TO mqbroker_task")

    assert "(mqbroker.W003) The database other has no table mqbroker_task, though all migrations are applied" in found
    assert "allow_migrate of DATABASE_ROUTERS" in found


def test_the_command_fails_for_a_wrong_setting(project: Project) -> None:
    right = project.manage("check")
    project.more = of_broker(ON_UNAVAILABLE="wait")
    try:
        wrong = project.manage("check")
    finally:
        project.more = {}

    assert (right.returncode, wrong.returncode) == (0, 1), right.stderr
    assert "(mqbroker.E001) MQBROKER has wrong values: ON_UNAVAILABLE" in wrong.stderr
