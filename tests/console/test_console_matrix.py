"""Every address of the console, by every method, for every role and every state of a user: one who lacks the right, or
has lost it, changes nothing, whatever is sent; an action is open to the roles that may do it, and to no other.

The addresses are the router's own, so one that asks for no role fails here as soon as it is there.
"""

import http.client
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from urllib.parse import quote, urlencode, urlsplit

import pytest
from psycopg import sql

from access import roles
from console.actions.kinds import KINDS, ONCE
from tests.console import given_up
from tests.console.conftest import PASSWORD, forget_attempts, manage
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_hostile import PARAMETER, ROUTES

NEVER = ("viewer", "stranger")
# Every method but POST, by which each form is sent.
OTHERS = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# What a mere visit writes, and what the process writes by itself.
VISITS = ("django_session", "sign_in_limit", "heartbeat", "presence", "segment", "history_figure", "history_counters")
TABLES = """
SELECT c.relname FROM pg_class AS c
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""
DIGEST = sql.SQL("SELECT {} AS name, md5(string_agg(t::text, '|' ORDER BY t::text)) AS digest FROM {} AS t")
ACTION = "0190f7c2-0000-7000-8000-000000000001"
# Admins who lose that after they signed in.
FORMER = f"""
from access import roles
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
password = make_password("{PASSWORD}")
for name in ("demoted", "deactivated", "deleted"):
    roles.assign(User.objects.create(username=name, password=password), "admin", bodies=False)
"""
KIM = (
    "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name, last_name, email,"
    " date_joined) VALUES ('kim', '', false, true, true, '', '', '', now()) RETURNING id"
)
OF_FORMER = "SELECT id FROM auth_user WHERE username IN ('demoted', 'deactivated', 'deleted')"
LOSES = (
    f"DELETE FROM auth_user_groups WHERE user_id IN ({OF_FORMER})",
    "UPDATE auth_user SET is_superuser = false WHERE username IN ('demoted', 'deleted')",
    "INSERT INTO auth_user_groups (user_id, group_id) SELECT u.id, g.id FROM auth_user AS u, auth_group AS g"
    " WHERE u.username = 'demoted' AND g.name = 'viewer'",
    "UPDATE auth_user SET is_active = false WHERE username = 'deactivated'",
    "DELETE FROM auth_user WHERE username = 'deleted'",
)
MADE = "('kim', 'new', 'demoted', 'deactivated')"
LEAVE = (
    f"DELETE FROM auth_user_groups WHERE user_id IN (SELECT id FROM auth_user WHERE username IN {MADE})",
    f"DELETE FROM auth_user WHERE username IN {MADE}",
)


# The addresses that take a form, and which of `forms` each does something with. Every other address gets WHOLE.
POSTED: dict[str, Callable[[dict[str, object]], bool]] = {
    "actions/new/": lambda form: form.get("action") in KINDS,
    "actions/once/": lambda form: form.get("action") in ONCE,
    "actions/<uuid:action_id>/steer/": lambda form: "to" in form and "action" not in form,
}
DELETES: dict[str, object] = {"post": "yes"}
CONTINUES: dict[str, object] = {"to": "continue"}
WHOLE = {**DELETES, **CONTINUES}
OF_ROLE = {"viewer": "vic", "operator": "oda", "admin": "ada"}


def contents(broker: Broker) -> dict[str, str | None]:
    """A digest of each table."""
    names = [row.relname for row in broker.connection.execute(TABLES) if row.relname not in VISITS]
    digests = sql.SQL(" UNION ALL ").join(DIGEST.format(sql.Literal(name), sql.Identifier(name)) for name in names)
    return {row.name: row.digest for row in broker.connection.execute(digests)}


def send(operator: Operator, method: str, path: str, form: Mapping[str, object]) -> int:
    """The status of a request with the session's cookies and its CSRF token."""
    cookies = {cookie.name: cookie.value or "" for cookie in operator.cookies}
    headers = {
        "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
        "X-CSRFToken": cookies.get("csrftoken", ""),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    line = http.client.HTTPConnection(urlsplit(operator.console).netloc, timeout=120)
    body = None if method in ("GET", "HEAD", "OPTIONS", "TRACE") else urlencode(form, doseq=True)
    line.request(method, f"/console/{path}", body, headers)
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer.status


@pytest.fixture
def kept(broker: Broker) -> Iterator[dict[str, str]]:
    """A broker with one of each, and the names of these in the addresses."""
    topic, group = broker.topic("shop"), broker.producer_group("shop")
    endpoint = broker.endpoint(group, "https://shop.example/checks")
    consumers = broker.consumer_group("shop")
    given_up.subscription(broker, "shop", "shop", "shop", "https://shop.example/in")
    broker.api_key("shop", hint="x2Qd", scopes=["manage"], digest=b"\xab" * 32)
    # Not due while this test sends its requests: the console's own process would ask.
    later = broker.now + timedelta(hours=1)
    half = broker.half(group, topic, b"order 1", timedelta(seconds=1), next_check_at=later)
    broker.connection.execute("DELETE FROM action WHERE id = %s", (ACTION,))
    broker.connection.execute(
        "INSERT INTO action (id, kind, targets, parameters, state, total, author, reason) "
        "VALUES (%s, 'topic.delete', '[\"shop\"]', '{}', 'paused', 1, 'ada', 'of a test')",
        (ACTION,),
    )
    broker.connection.execute("INSERT INTO namespace (name) VALUES ('shop')")
    broker.outbox("shop", paused=True)
    broker.schedule("shop", paused=True)
    kim = broker.connection.execute(KIM).fetchone()
    assert kim is not None
    ids = {"transaction_id": str(half), "message_id": str(half), "action_id": ACTION, "id": str(kim.id)}
    of_topic = {"object_id": str(consumers), "name": "shop", "app_label": "auth", "content_type_id": "1"}
    yield {**ids, **of_topic, "endpoint": f"shop endpoint {endpoint}"}
    for statement in LEAVE:
        broker.connection.execute(statement)


def forms(kept: dict[str, str]) -> list[dict[str, object]]:
    """What an unsafe request may hold: each kind of action, and what deletes and continues."""
    acts = [action_form(kind, kept) for kind in KINDS]
    targets = {
        kind: TARGETS.get(kind) or (kept["endpoint"] if kind.startswith("endpoint.r") else "shop") for kind in ONCE
    }
    acts += [{**VALUES, "action": kind, "target": targets[kind], "reason": "because"} for kind in ONCE]
    return [*acts, DELETES, CONTINUES]


def path_of(route: str, kept: dict[str, str]) -> str:
    """The path of a route, on what `kept` has."""
    return PARAMETER.sub(lambda found: quote(kept.get(found[1], "1")), route)


def action_form(kind: str, kept: dict[str, str]) -> dict[str, object]:
    """A whole form of an action on what `kept` has."""
    of_messages = dict.fromkeys(("transaction", "discarded", "dead_letter", "message"), kept["transaction_id"])
    kept_as = {**of_messages, "endpoint": kept["endpoint"]}
    target = TARGETS.get(kind) or kept_as.get(kind.partition(".")[0], "shop")
    declared = [one for one in KINDS[kind].fields if one.needed or KINDS[kind].standing]
    given = {one.column: VALUES[one.column] for one in declared}
    return {"action": kind, "target": target, "reason": "because", **given}


OF_USERS = {kind: "kim" for kind in (*KINDS, *ONCE) if kind.startswith("user.")}
TARGETS = OF_USERS | {kind: "new" for kind, one in {**KINDS, **ONCE}.items() if one.makes}
VALUES = {
    "role": "operator",
    "bodies": "yes",
    "active": "yes",
    "topic": "shop",
    "body": "order 2",
    "properties": '{"region": "eu"}',
    # No process reaches it.
    "source_url": "postgresql://shop:secret@127.0.0.1:9/shop",
    "to": "earliest",
    "group": "shop",
    "queues": "5",
    "reserved_hours": "7",
    "permission": "r",
    "sends_from": "2037-01-31T12:00:00Z",
    "reject_transaction_message": "yes",
    "max_undecided": "7",
    "max_topics": "7",
    "namespace": "",
    "topics": "invoices",
    "schema": "public",
    "cron": "0 4 * * *",
    "time_zone": "UTC",
    "missed": "skip",
    "begins_at": "2037-01-31T12:00:00Z",
    "ends_at": "",
    "checks_paused": "yes",
    "api_keys": "shop-*",
    "start_at": "latest",
    "ordered": "yes",
    "queue_order": "priority",
    "fair_by": "property:tenant",
    "limits": '{"by": "group", "in_flight": 5}',
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


def admins_forms(kept: dict[str, str]) -> list[dict[str, object]]:
    """What only an admin may send; `kept` has a paused action of an admin, which `to` continues."""
    given = forms(kept)
    actions = {name: kind.action for name, kind in KINDS.items()} | {name: once.action for name, once in ONCE.items()}
    permitted = {name for name, action in actions.items() if action in roles.OPERATORS}
    return [form for form in given if form.get("action") not in permitted]


@pytest.fixture
def without_right(
    broker: Broker, kept: dict[str, str], console: str, database: str, vic: Operator, stranger: Operator
) -> dict[str, Operator]:
    """Callers who may change nothing: two who never might, and three who were admins when they signed in."""
    manage(database, "shell", "--verbosity", "0", "--command", FORMER)
    forget_attempts(database)
    former = {name: Operator.signed_in(console, name, PASSWORD) for name in ("demoted", "deactivated", "deleted")}
    for statement in LOSES:
        broker.connection.execute(statement)
    stranger.sees("login/")
    return {"viewer": vic, "stranger": stranger, **former}


@pytest.mark.timeout(600)
def test_no_address_lets_a_caller_without_the_right_change_anything(
    broker: Broker, kept: dict[str, str], without_right: dict[str, Operator], oda: Operator
) -> None:
    before = contents(broker)
    changed, failed, opened = [], [], []
    everything, admins = forms(kept), admins_forms(kept)
    callers = {**without_right, "operator": oda}

    for route in ROUTES:
        path, requests = path_of(route, kept), []
        for name, caller in callers.items():
            posted = admins if caller is oda else everything
            chosen = list(filter(POSTED[route], posted)) if route in POSTED else [WHOLE]
            requests += [(name, "POST", form) for form in chosen]
            requests += [(name, method, chosen[-1]) for method in (OTHERS if name in NEVER else ("GET",))]
        statuses = [(name, method, send(callers[name], method, path, form)) for name, method, form in requests]
        after = contents(broker)
        changed += [(route, table) for table in after if after[table] != before[table]]
        failed += [(route, *asked) for *asked, status in statuses if status >= 500]
        opened += [(route, name) for name, _, status in statuses if status == 200]
        before = after

    assert changed == []
    assert failed == []
    let_in = {route for route, name in opened if name not in ("viewer", "demoted", "operator")}
    assert let_in <= {"login/", "jsi18n/"}


@pytest.mark.timeout(600)
def test_an_address_that_no_form_is_posted_to_changes_nothing_for_an_admin(
    broker: Broker, kept: dict[str, str], ada: Operator
) -> None:
    """An address that takes a form has to be in POSTED, with its forms."""
    before = contents(broker)
    changed, others = [], []

    for route in ROUTES:
        if route not in POSTED:
            statuses = {send(ada, "POST", path_of(route, kept), form) for form in ({}, DELETES, {"to": "pause"})}
            after = contents(broker)
            changed += [(route, table) for table in after if after[table] != before[table]]
            others += [(route, statuses)] if statuses - {200, 302, 403, 404, 405} else []
            before = after

    assert changed == []
    assert others == []


def test_the_forms_that_are_refused_do_what_they_say_for_an_admin(
    broker: Broker, kept: dict[str, str], ada: Operator
) -> None:
    """The counterpart: a form that could change nothing would prove nothing about a role."""
    idle, after = [], contents(broker)
    for route, chosen in POSTED.items():
        # What is deleted is needed by the others.
        deletes_last = sorted(forms(kept), key=lambda form: str(form.get("action")).endswith(".delete"))
        for form in filter(chosen, deletes_last):
            page = ada.posts(path_of(route, kept), form)
            before, after = after, contents(broker)
            idle += [(route, form.get("action"), page.status)] if after == before else []

    # Forms that are shown once need values which their own tests type; here they say what is missing.
    assert [each for each in idle if (each[0], each[2]) != ("actions/once/", 422)] == []


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_an_action_is_open_to_the_roles_that_may_do_it(
    kept: dict[str, str], request: pytest.FixtureRequest, role: str
) -> None:
    caller: Operator = request.getfixturevalue(OF_ROLE[role])
    permitted = roles.OPERATORS if role == "operator" else ()
    allowed = {kind for kind in KINDS if role == "admin" or KINDS[kind].action in permitted}

    asked = {kind: urlencode(action_form(kind, kept)) for kind in KINDS}
    statuses = {kind: send(caller, "GET", f"actions/new/?{asked[kind]}", {}) for kind in KINDS}

    assert {kind for kind, status in statuses.items() if status != 403} == allowed
    assert {kind: status for kind, status in statuses.items() if status >= 500} == {}
