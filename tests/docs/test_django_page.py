"""The project of the page on Django, made as it says: an order, its message and its coupon are there, or none is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.running import RunningBroker
from tests.docs.pages import page
from tests.docs.projects import Project, coupons, order

PAGE = page("docs/django.md").section("The whole project")
TESTS = page("docs/django.md").section("In tests")
# A test with the fixture of the page.
WITH_FIXTURE = """
import pytest
from mqbroker_client import Consumer

@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("count", [1, 2])
def test_an_order_that_commits_sends_its_message_to_an_empty_broker(client, mqbroker, count):
    for _ in range(count):
        client.post("/orders/tea")

    assert len(Consumer(mqbroker, "tests").receive("tasks-default")) == count
"""


@pytest.fixture
def url(broker: RunningBroker, tmp_path: Path) -> Iterator[str]:
    """Where the project answers, made and started as the page says."""
    with Project(tmp_path, broker).running(PAGE) as url:
        yield url


def test_an_order_of_the_project_is_followed_by_its_coupon_and_a_rolled_back_one_by_none(url: str) -> None:
    first = order(url, "tea")
    with pytest.raises(OSError, match="500"):
        order(url, "nothing")
    second = order(url, "coffee")

    assert coupons(url, 2) == [first["order"], second["order"]]


def test_the_tests_of_the_page_send_nothing_to_the_projects_broker(broker: RunningBroker, tmp_path: Path) -> None:
    # No broker is at this address.
    project = Project(tmp_path, broker, MQBROKER_URL="http://127.0.0.1:1")
    project.make(PAGE)
    [tests] = TESTS.blocks_of("python")
    [command] = [name for name in TESTS.names if name.startswith("python ")]
    (tmp_path / "orders" / "tests.py").write_text(tests)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["mqbroker_client.contrib.django.fixtures"]\n')
    (tmp_path / "test_with_fixture.py").write_text(WITH_FIXTURE)

    project.runs("python manage.py makemigrations orders")
    project.runs(command)
    project.runs("python -m pytest --ds shop.settings --rootdir . -p no:cacheprovider test_with_fixture.py")
