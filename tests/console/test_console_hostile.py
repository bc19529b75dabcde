"""Every address of the console with what no page links to: a page that says so, and never a failure."""

import itertools
import re
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest
from django.contrib import admin
from django.urls import URLPattern, URLResolver

from console.pages.routes import ROUTES as OWN_ROUTES
from tests.console.operators import Operator
from tests.console.rows import Broker

UUID = "0190f7c2-0000-7000-8000-000000000000"
HOSTILE = (
    "\0",
    "a\0b",
    "9" * 18,
    "9" * 400,
    "-" + "9" * 19,
    "nan",
    "٣",
    "'%",
    f"0001-01-01T00:00:00+14:00_{UUID}",
    f"9999-12-31T23:59:59.999999-14:00_{UUID}",
)
# What the pages read of their addresses, Django's and Unfold's own names among them.
OURS = (
    "tags",
    "attempts",
    "hour",
    "reason",
    "after",
    "producer_group",
    "topic",
    "older_than_seconds",
    "queue",
    "below",
    "q",
    "state",
    "before",
    "action",
    "target",
    "author",
    "action_id",
    "all",
    "most",
    "group",
    "to",
    "queue_id",
)
THEIRS = ("q", "o", "p", "s", "all", "next", "_popup", "_to_field", "_changelist_filters", "term", "model_name", "page")
# The worst ones, one parameter at a time; all of them with every parameter at once.
WORST = ("\0", "9" * 18, f"9999-12-31T23:59:59.999999-14:00_{UUID}")
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
LEAVES = ("logout/",)


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    """The routes of the console, each with its parameters in angle brackets."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        elif "(?P" not in route:
            yield route


PAGES = {route for route, _, _ in OWN_ROUTES}
ROUTES = sorted({route for route in routes(admin.site.get_urls()) if route not in LEAVES})


def test_the_console_has_all_these_addresses() -> None:
    assert {"", "topics/<str:name>/", "store/topic/", "auth/user/<id>/password/", "search/"} <= set(ROUTES)


@pytest.mark.parametrize("route", ROUTES)
def test_no_address_makes_the_console_fail(broker: Broker, ada: Operator, route: str) -> None:
    topic = broker.topic("orders", queues=2)
    group = broker.producer_group("shop")
    broker.half(group, topic, b"order 1", broker.now - broker.now)
    known = {"name": "orders", "transaction_id": UUID, "message_id": UUID, "object_id": "1", "id": "1"}
    plain = PARAMETER.sub(lambda found: known.get(found[1], "1"), route)

    asked = [
        *(
            f"{plain}?{name}={quote(value, safe='')}"
            for name, value in itertools.product(OURS, WORST)
            if route in PAGES
        ),
        *(f"{plain}?{name}=%00" for name in (*OURS, *THEIRS) if route not in PAGES),
        *(f"{plain}?{urlencode(dict.fromkeys(OURS + THEIRS, value))}" for value in HOSTILE),
        *(PARAMETER.sub(quote(value, safe=""), route) for value in HOSTILE if "<" in route),
    ]

    assert [one for one in asked if ada.sees(one).status >= 500] == []
