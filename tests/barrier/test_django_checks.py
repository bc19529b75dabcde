"""`manage.py check` of a Django project says what is missing for its messages."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.barrier import places, processes
from tests.barrier.conftest import make_barrier
from tests.barrier.places import Place
from tests.broker import forks

NOWHERE = "http://127.0.0.1:9"
# A URLconf without the view.
NO_URLS = "tests.barrier.no_urls"


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A database with all tables."""
    place = places.sqlite(tmp_path_factory.mktemp("migrated"))
    make_barrier(place, "django")
    return place


@pytest.fixture
def empty(tmp_path: Path) -> Place:
    """A database without tables."""
    return places.sqlite(tmp_path)


def checked(place: Place, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """`manage.py check` of the project, as it ended."""
    given = [sys.executable, "-m", "tests.barrier.site", place.words(), NOWHERE, "check", "--tag", "mqbroker", *words]
    return forks.run(given, {**processes.environment(), "MORE_SETTINGS": json.dumps(more)})


def test_a_project_that_has_all_is_silent(migrated: Place) -> None:
    done = checked(migrated, "--deploy", CHECK_SECRETS=["whsec_c2VjcmV0"])

    assert (done.returncode, done.stdout) == (0, "System check identified no issues (0 silenced).\n"), done.stderr


@pytest.mark.parametrize("words", [(), ("--deploy",), ("--database", "default")])
def test_a_migration_that_is_not_applied_is_named_with_its_command(empty: Place, words: tuple[str, ...]) -> None:
    done = checked(empty, *words, CHECK_SECRETS=["whsec_c2VjcmV0"])

    assert "(mqbroker.W001) The migration 0001_" in done.stderr
    assert "HINT: manage.py migrate mqbroker_client --database default" in done.stderr
    assert done.returncode == 0


def test_a_wrong_setting_is_an_error(migrated: Place) -> None:
    unknown, nowhere = checked(migrated, TIMEOUT=3), checked(migrated, DATABASE="other")

    assert "(mqbroker.E001) MQBROKER has no key TIMEOUT" in unknown.stderr
    assert "(mqbroker.E002) MQBROKER names the database other: DATABASES has default." in nowhere.stderr
    assert (unknown.returncode, nowhere.returncode) == (1, 1)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"URLS": NO_URLS}, "no URL leads to the view of mqbroker_client.contrib.django.urls"),
        ({}, "refuses all checks, for MQBROKER has no CHECK_SECRETS"),
        ({"URLS": NO_URLS, "CHECK_SECRETS": ["whsec_c2VjcmV0"]}, "MQBROKER has CHECK_SECRETS, and no URL leads"),
    ],
)
def test_that_nothing_answers_checks_is_said_before_a_deployment(
    migrated: Place, more: dict[str, Any], reason: str
) -> None:
    deployed, by_default = checked(migrated, "--deploy", **more), checked(migrated, **more)

    assert "(mqbroker.W002) No process of this project answers checks" in deployed.stderr
    assert reason in deployed.stderr
    assert "mqbroker.W002" not in by_default.stderr
