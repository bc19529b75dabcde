"""Every address of the console with what no page links to: a page that says so, and never a failure."""

import inspect
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
    "namespace",
)
THEIRS = ("q", "o", "p", "s", "all", "next", "_popup", "_to_field", "_changelist_filters", "term", "model_name", "page")
# The worst ones, one parameter of ours at a time; all of them with every parameter at once. A NUL is refused before a
# page is asked, whatever the parameter.
WORST = ("9" * 18, f"9999-12-31T23:59:59.999999-14:00_{UUID}")
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


admin.autodiscover()
ROUTES = sorted({route for route in routes(admin.site.get_urls()) if route not in LEAVES})
# The parameters that each of our pages may read: those that its module names; a form of actions has all of them.
FORMS = ("actions/new/", "actions/once/")
SOURCES = {route: inspect.getsource(inspect.getmodule(view) or view) for route, view, _ in OWN_ROUTES}
# The parameters that the module around the page reads for it.
AROUND = {"frame.narrowing": ("q", "namespace"), "frame.by_name": ("after", "q", "namespace")}


def read_by(route: str, source: str) -> list[str]:
    """Our parameters that a page may read."""
    around = {name for call, names in AROUND.items() if call in source for name in names}
    return [name for name in OURS if f'"{name}"' in source or route in FORMS or name in around]


READ = {route: read_by(route, source) for route, source in SOURCES.items()}


def test_the_console_has_all_these_addresses() -> None:
    assert {"", "topics/<str:name>/", "store/topic/", "users/", "search/"} <= set(ROUTES)
    assert READ["topics/<str:name>/"] == ["after", "queue", "below", "q", "namespace"]
    assert READ["actions/new/"] == list(OURS)


@pytest.mark.timeout(600)
def test_no_address_makes_the_console_fail(broker: Broker, ada: Operator) -> None:
    topic = broker.topic("orders", queues=2)
    group = broker.producer_group("shop")
    broker.half(group, topic, b"order 1", broker.now - broker.now)

    assert failing(ada, [one for route in ROUTES for one in addresses(route)]) == []


def failing(operator: Operator, tried: list[str]) -> list[str]:
    """Those of these addresses, and of those that they lead to, that make the console fail. Each is asked for once."""
    statuses: dict[str, int] = {}
    waiting = list(tried)
    while waiting:
        address = waiting.pop()
        if address not in statuses:
            statuses[address], onward = operator.looks_at(address)
            waiting += [onward] if onward else []
    return [address for address, status in statuses.items() if status >= 500]


def addresses(route: str) -> Iterator[str]:
    """The addresses of a route that are tried."""
    known = {"name": "orders", "transaction_id": UUID, "message_id": UUID, "object_id": "1", "id": "1"}
    plain = PARAMETER.sub(lambda found: known.get(found[1], "1"), route)
    yield f"{plain}?any=%00"
    for name, value in itertools.product(READ.get(route, ()), WORST):
        yield f"{plain}?{name}={quote(value, safe='')}"
    yield from (f"{plain}?{urlencode(dict.fromkeys(OURS + THEIRS, value))}" for value in HOSTILE)
    # A UUID's converter takes none of them: no view is asked, whatever the text is.
    tried = HOSTILE[:1] if route.count("<") == route.count("<uuid:") else HOSTILE
    yield from (PARAMETER.sub(quote(value, safe=""), route) for value in tried if "<" in route)
