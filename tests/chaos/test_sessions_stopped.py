"""A write of an operator whose session's process is stopped: its answer says what became of it, and comes soon."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from mqbroker.embedded.servers import postgres
from tests.actions.conftest import PASSWORD, made_at
from tests.broker import characters
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.chaos.stopped_sessions import STOPPED_AT, Place, stopping
from tests.chaos.test_operators_writes import (
    AT_ONCE,
    OF_MESSAGES,
    PROMISED_SECONDS,
    Outcome,
    asked,
    is_stored,
    lies,
    rounds,
)
from tests.console.operators import Operator as Visitor
from tests.console.operators import Page
from tests.control.operators import Operator
from tests.control.stock import Request, Stock

NEW_PASSWORD = "let me act as well"
# How often the audit names a user with an action.
DONE = "SELECT count(*) FROM audit_entry WHERE target = %s AND action = %s AND result = 'done'"


@pytest.fixture(scope="module")
def stock(mortal_broker: RunningBroker) -> Stock:
    return Stock(mortal_broker)


@pytest.fixture(scope="module")
def labels(mortal_broker: RunningBroker) -> list[str]:
    """Every write of an operator that the API has."""
    paths = Operator(mortal_broker.url, API_KEY).reads("/v1/schema")["paths"]
    writes = [f"{method.upper()} {path}" for path, found in paths.items() for method in found if method != "get"]
    return [label for label in writes if label not in OF_MESSAGES]


@pytest.fixture(scope="module")
def users(mortal_broker: RunningBroker) -> dict[str, Visitor]:
    """The users of the console who are signed in, by name."""
    return made_at(mortal_broker)


def all_go_on(broker: RunningBroker) -> bool:
    """Whether each web process writes again."""
    put = Request({}, {"topic": characters.name("after")})
    ways = [Operator(url, API_KEY) for url in broker.urls]
    return all(asked(way, "PUT /v1/topics/{topic}", put)[0].status < 300 for way in ways)


def outcomes(
    broker: RunningBroker, server: postgres.Server, requests: list[tuple[str, Request]], place: Place
) -> dict[str, Outcome]:
    """What becomes of each of these writes, where the process of its session is stopped at the same place."""
    operators = [Operator(url, API_KEY) for url in broker.urls]
    with stopping(server, place), ThreadPoolExecutor(AT_ONCE) as callers:
        calls = [
            (label, callers.submit(asked, operators[number % len(operators)], label, request))
            for number, (label, request) in enumerate(requests)
        ]
        answers = [(label, *call.result()) for label, call in calls]
    eventually(lambda: all_go_on(broker), within_seconds=30)
    with psycopg.connect(server.url) as connection:
        return {
            label: Outcome(answer, seconds, is_stored(connection, answer.headers["x-request-id"]))
            for label, answer, seconds in answers
        }


@pytest.mark.parametrize("place", STOPPED_AT)
def test_an_operators_write_whose_session_is_stopped_is_answered_by_what_became_of_it(
    server: postgres.Server, mortal_broker: RunningBroker, stock: Stock, labels: list[str], place: Place
) -> None:
    found: dict[str, Outcome] = {}
    for some in rounds(labels):
        found |= outcomes(mortal_broker, server, [(label, stock.request(label)) for label in some], place)

    assert lies(found) == []
    stored = [label for label, outcome in found.items() if outcome.is_stored]
    assert bool(stored) == (place == "during the commit")


# The actions of users whose form is answered with the outcome.
FORMS = ("user.make", "user.password")


def form(action: str, name: str) -> dict[str, object]:
    """The form of an action on a user."""
    return {"action": action, "target": name, "role": "viewer", "reason": "of a test"}


@pytest.mark.parametrize("action", FORMS)
@pytest.mark.parametrize("place", STOPPED_AT)
@pytest.mark.usefixtures("users")
def test_a_form_of_a_user_whose_session_is_stopped_is_answered_by_what_became_of_it(
    server: postgres.Server, mortal_broker: RunningBroker, action: str, place: Place
) -> None:
    ada = Visitor.signed_in(mortal_broker.url, "ada", PASSWORD)
    name = characters.name("eve")
    path = "actions/once/"
    if action != "user.make":
        ada.posts(path, form("user.make", name))

    given = form(action, name)
    page, seconds, stored = stopped_at(mortal_broker, server, place, lambda: ada.posts(path, given), (name, action))

    # A password is hashed beside it, which takes a core's time.
    assert seconds < at_this_load(PROMISED_SECONDS)
    assert is_true(page, stored), page.text
    # Another commit of the request, as of the attempts at a password, may be the one that is stopped.
    assert not stored or place == "during the commit"


@pytest.mark.parametrize("place", STOPPED_AT)
def test_the_change_of_ones_own_password_is_answered_by_what_became_of_it(
    server: postgres.Server, mortal_broker: RunningBroker, users: dict[str, Visitor], place: Place
) -> None:
    name, path = ("oda", "vic")[place == "during the commit"], "password_change/"
    fields: dict[str, object] = {
        "old_password": PASSWORD,
        "new_password1": NEW_PASSWORD,
        "new_password2": NEW_PASSWORD,
    }

    page, seconds, stored = stopped_at(
        mortal_broker, server, place, lambda: users[name].posts(path, fields), (name, "user.password")
    )

    # A password is hashed beside it, which takes a core's time.
    assert seconds < at_this_load(PROMISED_SECONDS)
    assert is_true(page, stored), page.text
    # Another commit of the request, as of the attempts at a password, may be the one that is stopped.
    assert not stored or place == "during the commit"


def stopped_at(
    broker: RunningBroker, server: postgres.Server, place: Place, act: Callable[[], Page], entry: tuple[str, str]
) -> tuple[Page, float, bool]:
    """The page that answers where the session is stopped, after how many seconds, and whether the audit has it."""
    with stopping(server, place):
        began = time.monotonic()
        page = act()
        seconds = time.monotonic() - began
    eventually(lambda: all_go_on(broker), within_seconds=30)
    with psycopg.connect(server.url) as connection:
        found = connection.execute(DONE, entry).fetchone()
    return page, seconds, found is not None and found[0] > 0


def is_true(page: Page, stored: bool) -> bool:
    """Whether a page says what became of the write of a form."""
    if page.status == 200:
        return stored
    return page.status == 503 and ("the change may be stored" in page.text or not stored)
