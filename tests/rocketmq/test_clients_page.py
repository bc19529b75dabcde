"""The page on RocketMQ's own clients names what is tested and served; `tests/docs/test_diaries.py` runs it."""

from mqbroker.rocketmq import service
from tests.docs.pages import page
from tests.rocketmq import official

PAGE = page("docs/rocketmq-clients.md")


def test_the_package_is_that_of_the_tests() -> None:
    assert f"pip install {official.PYTHON}" in PAGE.text
    assert f"npm install {official.NODE}" in PAGE.text


def test_every_call_that_is_served_stands_on_the_page() -> None:
    table = PAGE.section("What is served").text

    assert {call for call in service.handlers(read_whole=True) if call not in table} == set()
