"""The project of the page on Django, made as it says: an order, its message and its coupon are there, or none is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.running import RunningBroker
from tests.docs.pages import page
from tests.docs.projects import Project, coupons, order

PAGE = page("docs/django.md").section("The whole project")


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
