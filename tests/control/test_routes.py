"""Routes: a path of the data plane leads to the view that Django's resolver would find, escapes decoded."""

from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, URLResolver, path
from django.urls.resolvers import RegexPattern
from hypothesis import example, given
from hypothesis import strategies as st

from mqbroker.api.router import Route, Router
from mqbroker.api.routes import routes

ROUTER = Router(routes)
WORDS = sorted(
    {part for route in routes for part in route.pattern.split("/")} | {"", "0", "17", "٣", "-1", "a b", "\n"}
)


def never_called(request: HttpRequest, **named: Any) -> HttpResponse:
    """Stands in Django's resolver for a route; only its pattern is used."""
    raise AssertionError("no request is made")


RESOLVER = URLResolver(RegexPattern(r"^/"), [path(route.pattern, never_called, name=route.pattern) for route in routes])


def resolved(text: str) -> tuple[str, dict[str, Any]] | None:
    """The pattern and parameters that Django finds."""
    try:
        match = RESOLVER.resolve(text)
    except Resolver404:
        return None
    return str(match.url_name), match.kwargs


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), min_size=1, max_size=7).map("/".join))
@example("v1/topics/orders/queues/00/messages")
@example("v1/topics/orders/queues/" + "9" * 4300 + "/messages")
@example("v1/topics/orders/queues/" + "9" * 4301 + "/messages")
@example("v1/messages/batch/trace")
@example("v1/messages//trace")
@example("v1/messages/\n")
@example("v1/producer-groups/a/checks/receive/")
def test_a_path_leads_where_djangos_resolver_leads(text: str) -> None:
    found = ROUTER.find("/" + text)

    assert (found and (found[0].pattern, found[1])) == resolved("/" + text)


@pytest.mark.parametrize("pattern", [route.pattern for route in routes])
def test_every_route_is_found_by_its_own_path(pattern: str) -> None:
    found = ROUTER.find("/" + pattern.replace("<int:queue_id>", "7"))

    assert found is not None
    assert found[0].pattern == pattern


def test_a_route_with_its_parameters_elsewhere_is_refused() -> None:
    """The dictionary of a path's length has one set of constant parts."""
    other = Route("v1/<str:kind>/trace", {}, lambda: 0)

    with pytest.raises(ValueError, match="has its parameters elsewhere"):
        Router([*routes, other])
