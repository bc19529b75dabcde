"""Every path, asked by every kind of caller: exactly those get an answer that docs/access.md names."""

import re
from typing import Any

import psycopg
import pytest

from console.pages.routes import ROUTES
from mqbroker.embedded import commands
from tests.access import table
from tests.access.principals import KEYS, OWN, Principal, ask, granted
from tests.access.table import Row
from tests.broker import characters, forks
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, problem
from tests.console.operators import Operator as ConsoleUser
from tests.control.conftest import PASSWORD
from tests.control.operators import Operator

TOPIC, GROUP, SHOP = OWN["topic"], OWN["group"], "own-shop"
BODY = "what only readers of the topic see"
MAKE_USERS = f"""
from access import roles
from django.contrib.auth.models import User
for role in ("viewer", "operator"):
    roles.assign(User.objects.create_user(role, password="{PASSWORD}"), role, bodies=False)
"""
HALF = {"topic": TOPIC, "body": BODY, "producer_group": SHOP}
PUSH = {"group": GROUP, "topic": TOPIC, "url": "http://127.0.0.1:9/", "paused": True}


class Things:
    """What the paths are about: a topic with a message, a transaction, an endpoint, a subscription, a dead letter."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        operator.put(f"/v1/topics/{TOPIC}", queues=1)
        operator.put(f"/v1/consumer-groups/{GROUP}", max_reconsume_times=0)
        operator.put(f"/v1/producer-groups/{SHOP}")
        sent = operator.make("/v1/messages", topic=TOPIC, body=BODY).document
        self._bury(operator)
        operator.make("/v1/messages", topic=TOPIC, body=BODY)
        begun = operator.make("/v1/transactions", **HALF).document
        found = operator.make(f"/v1/producer-groups/{SHOP}/endpoints", url="http://127.0.0.1:9/check").document
        self.named = {
            "message_id": sent["message_id"],
            "transaction_id": begun["transaction_id"],
            "endpoint_id": found["id"],
            "queue_id": 0,
            "topic": TOPIC,
            **dict.fromkeys(("name_or_id", "namespace"), "absent"),
        }

    @staticmethod
    def _bury(operator: Operator) -> None:
        """Has the group give a message up."""
        [entry] = operator.make(f"/v1/consumer-groups/{GROUP}/receive", topic=TOPIC).document["messages"]
        operator.make(f"/v1/consumer-groups/{GROUP}/nack", receipt_handles=[entry["receipt_handle"]])
        assert operator.reads(f"/v1/dead-letters/{GROUP}")["results"][0]["message"]["body"] == BODY

    def request(self, row: Row) -> tuple[str, Document | None]:
        """The path of a row about these things, and a body that it takes."""
        if "{name}" in row.path:
            name, made = characters.name("own"), re.sub("/(rotate-secret|firings)$", "", row.path)
            if row.method != "PUT":
                assert self._operator.put(made.format(name=name), **BODIES["PUT", made]).status == 201
            return row.path.format(name=name), BODIES.get((row.method, row.path))
        named = self.named | {"group": SHOP if "producer" in row.path else GROUP}
        if row.method == "DELETE":
            named |= {"topic": "absent", "group": "absent", "endpoint_id": 1 << 30}
        path = row.path.format(**named)
        body = BODIES.get((row.method, row.path), {} if row.method in ("POST", "PUT") else None)
        if row.path == "/v1/messages/recall":
            later = self._operator.make("/v1/messages", topic=TOPIC, body=BODY, delay_seconds=3600)
            body = {"recall_handle": later.document["recall_handle"]}
        return path + QUERIES.get((row.method, row.path), ""), body


# How Django writes the parameter of a console page.
CONVERTER = re.compile(r"<(str|uuid):(\w+)>")
# To the sign-in, or for a page that takes no GET nowhere.
LED_AWAY = ((302, True), (405, False))
OF_TOPIC = ("/v1/messages", "/v1/consumer-groups/{group}/offsets")
QUERIES = {("GET", path): f"?topic={TOPIC}" for path in OF_TOPIC}
BODIES: dict[tuple[str, str], Document] = {
    ("POST", "/v1/messages"): {"topic": TOPIC, "body": BODY},
    ("POST", "/v1/messages/batch"): {"topic": TOPIC, "messages": [{"body": BODY}]},
    ("POST", "/v1/transactions"): HALF,
    ("POST", "/v1/transactions/{transaction_id}/end"): {"producer_group": SHOP, "state": "UNKNOWN"},
    ("POST", "/v1/consumer-groups/{group}/receive"): {"topic": TOPIC, "invisible_seconds": 10},
    ("PUT", "/v1/consumer-groups/{group}/offsets"): {"topic": TOPIC, "to": "earliest", "dry_run": True},
    ("PUT", "/v1/subscriptions/{name}"): PUSH,
    ("PUT", "/v1/outboxes/{name}"): {"url": "postgresql://shop:x@127.0.0.1:9/shop", "topics": [TOPIC], "paused": True},
    ("PUT", "/v1/schedules/{name}"): {"cron": "0 3 * * *", "message": {"topic": TOPIC, "body": BODY}, "paused": True},
    ("POST", "/v1/producer-groups/{group}/endpoints"): {"url": "http://127.0.0.1:9/check"},
}


@pytest.fixture(scope="module")
def things(broker: RunningBroker) -> Things:
    return Things(Operator(broker.url, broker.wire().api_key))


@pytest.fixture(scope="module")
def principals(broker: RunningBroker, things: Things, password: str) -> list[Principal]:
    """Every caller: without a key, with bad ones, with each scope, and with a session."""
    operator = Operator(broker.url, broker.wire().api_key)
    keys = [
        Principal("no key", {}),
        Principal("an unknown key", _bearer("mq_unknown")),
        Principal("a revoked key", _bearer(_revoked(operator))),
        Principal("an expired key", _bearer(_expired(operator, broker.database_url))),
    ]
    for name, scopes in KEYS.items():
        keys.append(Principal(name, _bearer(_key(operator, scopes)), frozenset(granted(scopes))))
    words = commands.manage("shell", "--verbosity", "0", "--command", MAKE_USERS)
    forks.run(words, broker.environment).check_returncode()
    sessions = {role: _session(broker.url, role, password) for role in table.ROLES}
    users = [Principal(f"the console user {role}", headers, role=role) for role, headers in sessions.items()]
    return [*keys, *users]


def _key(operator: Operator, scopes: list[str]) -> str:
    made = operator.make("/v1/api-keys", name=characters.name("key"), scopes=scopes)
    key: str = made.document["key"]
    return key


def _revoked(operator: Operator) -> str:
    made = operator.make("/v1/api-keys", name=characters.name("revoked"), scopes=["manage", "read:*"]).document
    operator.delete(f"/v1/api-keys/{made['id']}")
    key: str = made["key"]
    return key


def _expired(operator: Operator, database_url: str) -> str:
    made = operator.make("/v1/api-keys", name=characters.name("expired"), scopes=["manage", "read:*"]).document
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE api_key SET expires_at = now() WHERE id = %s", [made["id"]])
    key: str = made["key"]
    return key


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _session(url: str, name: str, password: str) -> dict[str, str]:
    user = ConsoleUser.signed_in(url, name, password)
    cookies = {cookie.name: cookie.value or "" for cookie in user.cookies}
    sent = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return {"Cookie": sent, "X-CSRFToken": cookies["csrftoken"]}


def expected(row: Row, principal: Principal) -> int | None:
    """The status of the refusal; None where the caller is let in."""
    if row.needs == "nothing":
        return None
    if principal.role is not None and row.console != "no":
        return None if row.allows_user(principal.role) else 403
    if principal.scopes is None:
        return 401
    scopes = set(principal.scopes)
    if row.allows_key(scopes, OWN):
        return None
    return 404 if row.hides_from(scopes) else 403


def test_the_page_names_every_path_and_no_other() -> None:
    documented = [(row.method, row.path) for row in table.rows()]

    assert sorted(documented) == sorted(table.served())


@pytest.mark.parametrize("row", table.rows(), ids=lambda row: f"{row.method} {row.path}")
def test_a_path_answers_exactly_those_whom_the_page_names(
    broker: RunningBroker, things: Things, principals: list[Principal], row: Row
) -> None:
    for principal in principals:
        path, body = things.request(row)

        answer = ask(broker.url, principal.headers, row.method, path, body)

        wanted = expected(row, principal)
        refused = answer.status if answer.status in (401, 403, wanted) else None
        assert refused == wanted, (principal.name, answer)
        assert answer.status < 500, (principal.name, answer)
        if refused in (401, 403):
            code = {401: "unauthenticated", 403: "no_permission"}[refused]
            assert answer.document == problem(refused, code, answer.document["detail"])
        if not {f"read:{TOPIC}", f"produce:{TOPIC}"} & (principal.scopes or set()):
            assert BODY not in str(answer.document), principal.name


def test_no_key_opens_a_page_of_the_console(broker: RunningBroker, things: Things, principals: list[Principal]) -> None:
    named = {**things.named, "name": TOPIC, "action_id": things.named["transaction_id"]}
    pages = ["", "transactions/endpoint/"]
    pages += [CONVERTER.sub(r"{\2}", pattern).format(**named) for pattern, _, _ in ROUTES]
    assert len(pages) > 20
    # Those with a session are the console's own matter: tests/console/test_console_matrix.py.
    for principal in (one for one in principals if one.name in ("no key", "manage", "every scope")):
        for page in pages:
            answer = ask(broker.url, principal.headers, "GET", f"/console/{page}")

            assert (answer.status, "/console/login/" in answer.headers.get("location", "")) in LED_AWAY, (page, answer)
            assert BODY not in str(answer.document)


def test_a_bulk_needs_for_each_operation_what_its_call_needs(operator: Operator, things: Things) -> None:
    producer = Operator(operator.url, _key(operator, ["produce:own-*"]))
    other = Operator(operator.url, _key(operator, ["produce:other-*", "consume:other-*"]))
    operations: list[dict[str, Any]] = [
        {"op": "send", "topic": TOPIC, "body": BODY},
        {"op": "half", **HALF},
        {"op": "half", "producer_group": SHOP, "messages": [{"topic": TOPIC, "body": BODY}] * 2},
        {"op": "end", "transaction_id": things.named["transaction_id"], "producer_group": SHOP, "state": "UNKNOWN"},
        {"op": "ack", "group": GROUP, "receipt_handles": ["x"]},
    ]

    assert [result["status"] for result in producer.bulk(*operations)] == [201, 201, 201, 202, 403]
    assert [result["status"] for result in other.bulk(*operations)] == [403, 403, 403, 404, 403]


def test_a_subscription_goes_to_no_topic_or_group_that_its_key_may_not_receive(
    operator: Operator, things: Things
) -> None:
    """Neither the ones that it had, nor the ones that it gets."""
    name = characters.name("push")
    path = f"/v1/subscriptions/{name}"
    operator.put("/v1/topics/other-orders")
    own = Operator(operator.url, _key(operator, ["consume:own-*", "read:own-*"]))
    other = Operator(operator.url, _key(operator, ["consume:other-*", "read:other-*"]))
    assert own.put(path, **PUSH).status == 201

    refusals = [
        other.put(path, url="http://127.0.0.1:9/other"),
        other.put(path, group="other-coupons", topic="other-orders"),
        own.put(path, topic="other-orders"),
        own.put(path, group="other-coupons"),
    ]

    assert [answer.problem["detail"].partition(" lacks the scope ")[2].partition(":")[0] for answer in refusals] == [
        "consume",
        "consume",
        "read",
        "consume",
    ]
    shown = own.reads(path)
    assert (shown["group"], shown["topic"], shown["url"]) == (GROUP, TOPIC, PUSH["url"])


class Shops:
    """Two programs that may produce to the same topic, each with a key of its own."""

    def __init__(self, operator: Operator) -> None:
        self.names = [characters.name("shop"), characters.name("thief")]
        keys = [
            operator.make("/v1/api-keys", name=name, scopes=["produce:own-*"]).document["key"] for name in self.names
        ]
        self.shop, self.thief = (Operator(operator.url, key) for key in keys)
        self.group = characters.name("group")

    def half(self) -> Document:
        return {"topic": TOPIC, "body": "order", "producer_group": self.group}

    def refusal(self) -> Document:
        return problem(
            403,
            "no_permission",
            f"The key {self.names[1]!r} may not act for the producer group {self.group}: add it to its api_keys by "
            f"PUT /v1/producer-groups/{self.group}, or name another group.",
        )


@pytest.fixture
def shops(operator: Operator, things: Things) -> Shops:
    return Shops(operator)


def test_a_producer_group_belongs_to_the_key_that_made_it(operator: Operator, shops: Shops) -> None:
    begun = shops.shop.make("/v1/transactions", **shops.half()).document
    end = {"producer_group": shops.group, "state": "COMMIT"}
    transaction = f"/v1/transactions/{begun['transaction_id']}"

    assert operator.reads(f"/v1/producer-groups/{shops.group}")["api_keys"] == [shops.names[0]]
    assert shops.thief.make("/v1/transactions", **shops.half()).problem == shops.refusal()
    assert shops.thief.make(f"{transaction}/end", **end).problem == shops.refusal()
    assert shops.thief.make(f"/v1/producer-groups/{shops.group}/checks/receive").problem == shops.refusal()
    [half, ended] = shops.thief.bulk(
        {"op": "half", **shops.half()}, {"op": "end", "transaction_id": begun["transaction_id"], **end}
    )
    assert (half, ended) == (shops.refusal(), shops.refusal())
    assert shops.shop.make(f"{transaction}/end", **end).document["state"] == "COMMITTED"


def test_an_operator_says_which_keys_act_for_a_producer_group(operator: Operator, shops: Shops) -> None:
    path = f"/v1/producer-groups/{shops.group}"
    shops.shop.make("/v1/transactions", **shops.half())

    changed = operator.put(path, api_keys=[f"{shops.names[0][:4]}*", shops.names[1]])

    assert (changed.status, changed.document["api_keys"]) == (200, ["shop*", shops.names[1]])
    assert [one.make("/v1/transactions", **shops.half()).status for one in (shops.shop, shops.thief)] == [201, 201]


def test_a_producer_group_that_an_operator_made_is_open(operator: Operator, shops: Shops) -> None:
    assert operator.put(f"/v1/producer-groups/{shops.group}").document["api_keys"] is None

    assert [one.make("/v1/transactions", **shops.half()).status for one in (shops.shop, shops.thief)] == [201, 201]


def test_a_key_that_manages_acts_for_every_producer_group(operator: Operator, shops: Shops) -> None:
    begun = shops.shop.make("/v1/transactions", **shops.half()).document

    ended = operator.make(
        f"/v1/transactions/{begun['transaction_id']}/end", producer_group=shops.group, state="ROLLBACK"
    )

    assert ended.status == 200
