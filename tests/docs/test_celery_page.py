"""The project of the page on Celery, made as it says: a committed order's task runs, and a rolled-back one's never."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.running import RunningBroker
from tests.docs.pages import page
from tests.docs.projects import Project, coupons, order

PAGE = page("docs/from-celery.md")
DJANGO = page("docs/django.md").section("The whole project")


@pytest.fixture
def url(broker: RunningBroker, tmp_path: Path) -> Iterator[str]:
    """Where the project answers, made and started as the page says."""
    # A database of the server's own: the tests' broker has its tasks in the first.
    redis = broker.environment["REDIS_URL"].rpartition("/")[0] + "/7"
    with Project(tmp_path, broker, CELERY_BROKER_URL=redis).running(PAGE.section("The whole project"), DJANGO) as url:
        yield url


def test_a_task_runs_for_the_order_that_was_committed_and_for_no_other(url: str) -> None:
    first = order(url, "tea")
    with pytest.raises(OSError, match="500"):
        order(url, "nothing")
    second = order(url, "coffee")

    assert coupons(url, 2) == [first["order"], second["order"]]
    assert first["task"] != second["task"]
