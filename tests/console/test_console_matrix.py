"""Every address of the console, by every method, for every role: a viewer and a stranger change nothing, whatever they
send; an action is open to the roles that may do it, and to no other.
"""

import http.client
from datetime import timedelta
from urllib.parse import quote, urlencode, urlsplit

import pytest
from psycopg import sql

from access import roles
from actions.kinds import KINDS
from actions.shown_once import KINDS as ONCE
from console import asking, fields
from console.asking import CHANGES, MAKES, WORDS
from console.fields import PARAMETERS
from tests.console.conftest import PASSWORD
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_hostile import PARAMETER, ROUTES

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# What a mere visit writes, and what the process writes by itself.
VISITS = ("django_session", "sign_in_limit", "heartbeat", "segment")
TABLES = """
SELECT c.relname FROM pg_class AS c
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""
DIGEST = sql.SQL("SELECT {} AS name, md5(string_agg(t::text, '|' ORDER BY t::text)) AS digest FROM {} AS t")
ACTION = "0190f7c2-0000-7000-8000-000000000001"
OF_ROLE = {"viewer": "vic", "operator": "oda", "admin": "ada"}


def contents(broker: Broker) -> dict[str, str | None]:
    """A digest of each table."""
    names = [row.relname for row in broker.connection.execute(TABLES) if row.relname not in VISITS]
    digests = sql.SQL(" UNION ALL ").join(DIGEST.format(sql.Literal(name), sql.Identifier(name)) for name in names)
    return {row.name: row.digest for row in broker.connection.execute(digests)}


def send(operator: Operator, method: str, path: str, form: dict[str, object]) -> int:
    """The status of a request with the session's cookies and its CSRF token."""
    cookies = {cookie.name: cookie.value or "" for cookie in operator.cookies}
    headers = {
        "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
        "X-CSRFToken": cookies.get("csrftoken", ""),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    line = http.client.HTTPConnection(urlsplit(operator.console).netloc, timeout=20)
    body = None if method in ("GET", "HEAD", "OPTIONS", "TRACE") else urlencode(form, doseq=True)
    line.request(method, f"/console/{path}", body, headers)
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer.status


@pytest.fixture
def kept(broker: Broker) -> dict[str, str]:
    """A broker with one of each, and the names of these in the addresses."""
    topic, group = broker.topic("shop"), broker.producer_group("shop")
    broker.endpoint(group, "https://shop.example/checks")
    consumers = broker.consumer_group("shop")
    broker.api_key("shop", hint="x2Qd", scopes=["manage"], digest=b"\xab" * 32)
    # Not due while this test sends its requests: the console's own process would ask.
    later = broker.now + timedelta(hours=1)
    half = broker.half(group, topic, b"order 1", timedelta(seconds=1), next_check_at=later)
    broker.connection.execute(
        "INSERT INTO action (id, kind, targets, parameters, state, total, author, reason) "
        "VALUES (%s, 'topic.delete', '[\"shop\"]', '{}', 'paused', 1, 'ada', 'of a test') ON CONFLICT DO NOTHING",
        (ACTION,),
    )
    users = broker.connection.execute("SELECT id FROM auth_user WHERE username = 'bob'").fetchone()
    assert users is not None
    ids = {"transaction_id": str(half), "message_id": str(half), "action_id": ACTION, "id": str(users.id)}
    return {**ids, "object_id": str(consumers), "name": "shop", "app_label": "auth", "content_type_id": "1"}


def forms(half: str) -> list[dict[str, object]]:
    """What an unsafe request may hold: each kind of action, and what makes, changes and deletes users."""
    user = {"username": "mallory", "role": "admin", "is_active": "on", "password1": PASSWORD, "password2": PASSWORD}
    dates = {"date_joined_0": "2026-01-01", "date_joined_1": "12:00:00", "usable_password": "true"}
    acts = [action_form(kind, half) for kind in KINDS]
    acts += [{**VALUES, "action": kind, "target": "shop", "reason": "because"} for kind in ONCE]
    return [*acts, {**user, **dates}, {"post": "yes"}, {"to": "continue"}]


def action_form(kind: str, half: str) -> dict[str, object]:
    """A whole form of an action on what `kept` has."""
    target = (
        half
        if kind.startswith(("transaction.", "discarded.", "dead_letter.", "message."))
        else TARGETS.get(kind, "shop")
    )
    given = {one.name: VALUES[one.name] for one in PARAMETERS.get(kind, ()) if one.needed or kind in MAKES + CHANGES}
    return {"action": kind, "target": target, "reason": "because", **given}


TARGETS = dict.fromkeys(MAKES, "new")
VALUES = {
    "topic": "shop",
    "to": "earliest",
    "group": "shop",
    "queues": "5",
    "reserved_hours": "7",
    "permission": "r",
    "reject_transaction_message": "yes",
    "max_undecided": "7",
    "checks_paused": "yes",
    "api_keys": "shop-*",
    "start_at": "latest",
    "ordered": "yes",
    "max_reconsume_times": "3",
    "retry_policy": '{"kind": "none"}',
    "paused": "yes",
    "max_batch": "5",
    "timeout_seconds": "2",
    "concurrency": "2",
    "url": "https://shop.example/other",
    "group_name": "shop",
    "topic_name": "shop",
    "filter": "A || B",
    "scopes": "manage",
    "expires_at": "2037-01-31T12:00:00Z",
    "messages_per_second": "10",
    "bytes_per_second": "1000",
}


@pytest.mark.timeout(600)
def test_a_viewer_and_a_stranger_change_nothing_by_any_method(
    broker: Broker, kept: dict[str, str], vic: Operator, stranger: Operator
) -> None:
    stranger.sees("login/")
    before = contents(broker)
    changed, failed, opened = [], [], []
    everything = forms(kept["transaction_id"])
    where_no_action_is_asked_for = everything[len(KINDS) + len(ONCE) :] + everything[:1]

    for route in ROUTES:
        path = PARAMETER.sub(lambda found: quote(kept.get(found[1], "1")), route)
        posted = everything if route.startswith("actions/") else where_no_action_is_asked_for
        requests = [(vic, "POST", form) for form in posted[1:]]
        requests += [(caller, method, posted[0]) for method in METHODS for caller in (vic, stranger)]
        statuses = [(caller, method, send(caller, method, path, form)) for caller, method, form in requests]
        after = contents(broker)
        changed += [(route, table) for table in after if after[table] != before[table]]
        failed += [(route, method, status) for _, method, status in statuses if status >= 500]
        opened += [(route, method) for caller, method, status in statuses if caller is stranger and status == 200]
        before = after

    assert changed == []
    assert failed == []
    assert {route for route, _ in opened} <= {"login/", "jsi18n/"}


def test_every_kind_has_its_words_and_fields() -> None:
    assert (set(WORDS), set(asking.ONCE)) == (set(KINDS), set(ONCE))
    assert PARAMETERS.keys() <= KINDS.keys()
    assert fields.ONCE.keys() <= ONCE.keys()
    assert {kind for kind in KINDS if KINDS[kind].standing} == {*MAKES, *CHANGES}


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_an_action_is_open_to_the_roles_that_may_do_it(
    kept: dict[str, str], request: pytest.FixtureRequest, role: str
) -> None:
    caller: Operator = request.getfixturevalue(OF_ROLE[role])
    permitted = roles.OPERATORS if role == "operator" else ()
    allowed = {kind for kind in KINDS if role == "admin" or KINDS[kind].action in permitted}

    asked = {kind: urlencode(action_form(kind, kept["transaction_id"])) for kind in KINDS}
    statuses = {kind: send(caller, "GET", f"actions/new/?{asked[kind]}", {}) for kind in KINDS}

    assert {kind for kind, status in statuses.items() if status != 403} == allowed
    assert {kind: status for kind, status in statuses.items() if status >= 500} == {}
