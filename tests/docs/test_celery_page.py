"""The project of the page on Celery, made as it says: a committed order's task runs, and a rolled-back one's never."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.docs.pages import page
from tests.docs.projects import Project
from tests.docs.test_fastapi import asked

PAGE = page("docs/from-celery.md")


@pytest.fixture
def url(broker: RunningBroker, tmp_path: Path) -> Iterator[str]:
    """Where the project answers, made and started as the page says."""
    # A database of the server's own: the tests' broker has its tasks in the first.
    redis = broker.environment["REDIS_URL"].rpartition("/")[0] + "/7"
    with Project(tmp_path, broker, CELERY_BROKER_URL=redis).running(PAGE.section("The whole project")) as url:
        yield url


def test_a_task_runs_for_the_order_that_was_committed_and_for_no_other(url: str) -> None:
    first = eventually(partial(asked, "POST", f"{url}/orders/tea"), within_seconds=60)
    with pytest.raises(OSError, match="500"):
        asked("POST", f"{url}/orders/nothing")
    second = asked("POST", f"{url}/orders/coffee")

    def given() -> list[int] | None:
        found = asked("GET", f"{url}/coupons")["orders"]
        return sorted(found) if len(found) >= 2 else None

    assert eventually(given, within_seconds=60) == [first["order"], second["order"]]
    assert first["task"] != second["task"]
