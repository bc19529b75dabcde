"""Wherever the console sends a browser, it is to a path of the console's own, whatever Host and `next` say."""

import http.client
from urllib.parse import quote, urlencode, urlsplit

import pytest

from tests.console.conftest import PASSWORD, forget_attempts
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_hostile import LEAVES, ROUTES
from tests.console.test_console_matrix import path_of

EVIL = "evil.example"
ELSEWHERE = (f"http://{EVIL}/x", f"https://{EVIL}/x", f"//{EVIL}/x", f"///{EVIL}/x")
NEXT = ("next", "redirect_to", "url", "_changelist_filters")
# How each address is asked: by which method, and where else its query and its form lead.
ASKED = (
    ("GET", ELSEWHERE[0], ""),
    ("GET", ELSEWHERE[2], ""),
    ("POST", ELSEWHERE[1], ELSEWHERE[2]),
)


def leads_to(operator: Operator, method: str, path: str, form: dict[str, str]) -> tuple[int, str]:
    """The status and the place of an answer to a request that calls this broker `evil.example`."""
    cookies = {cookie.name: cookie.value or "" for cookie in operator.cookies}
    headers = {
        "Host": EVIL,
        "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
        "X-CSRFToken": cookies.get("csrftoken", ""),
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "text/html",
    }
    line = http.client.HTTPConnection(urlsplit(operator.console).netloc, timeout=120)
    line.request(method, path, urlencode(form) if method == "POST" else None, headers)
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer.status, answer.headers["Location"] or ""


@pytest.mark.parametrize("place", ELSEWHERE)
def test_the_sign_in_leads_to_no_other_host(database: str, console: str, place: str) -> None:
    forget_attempts(database)
    vic = Operator(console)
    vic.sees("login/")

    form = {"username": "vic", "password": PASSWORD, "next": place}
    status, leads = leads_to(vic, "POST", "/console/login/", form)

    assert (status, leads) == (302, "/console/")


def test_the_sign_in_leads_to_the_page_that_was_asked_for(database: str, console: str) -> None:
    forget_attempts(database)
    vic = Operator(console)
    vic.sees("login/")

    form = {"username": "vic", "password": PASSWORD, "next": "/console/topics/?q=a"}

    assert leads_to(vic, "POST", "/console/login/", form) == (302, "/console/topics/?q=a")


@pytest.mark.parametrize("caller", ["vic", "stranger"])
def test_no_address_leads_to_another_host(
    broker: Broker, request: pytest.FixtureRequest, console: str, database: str, caller: str
) -> None:
    operator: Operator = request.getfixturevalue(caller)
    kept = dict.fromkeys(("transaction_id", "message_id", "action_id"), "0190f7c2-0000-7000-8000-000000000000")
    kept |= {"id": "1", "object_id": "1", "name": "shop", "app_label": "auth", "content_type_id": "1"}
    own = [f"/console/{path_of(route, kept)}" for route in ROUTES]
    # What they make of a path without its last slash, or of a doubled first one, is a redirect, too.
    paths = ["/", "/docs", *own, *(path.rstrip("/") for path in own), *(f"/{path}" for path in own)]

    foreign = []
    for path in paths:
        for method, place, posted in ASKED:
            query, form = urlencode(dict.fromkeys(NEXT, place)), dict.fromkeys(NEXT, posted)
            _, leads = leads_to(operator, method, f"{path}?{query}", form)
            foreign += [(method, path, leads)] if urlsplit(leads).netloc or urlsplit(leads).scheme else []

    assert foreign == []


@pytest.mark.parametrize("place", ELSEWHERE)
def test_the_sign_out_leads_to_no_other_host(database: str, console: str, place: str) -> None:
    assert LEAVES == ("logout/",)
    forget_attempts(database)
    vic = Operator.signed_in(console, "vic", PASSWORD)

    status, leads = leads_to(vic, "POST", f"/console/logout/?next={quote(place)}", {"next": place})

    assert status in (200, 302)
    assert EVIL not in leads
