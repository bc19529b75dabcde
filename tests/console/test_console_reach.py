"""Promises about what can be done in the console: each action is reached from a page, by a role that may do it."""

import re
from datetime import timedelta
from html import unescape
from urllib.parse import unquote

import pytest

from access import roles
from console.actions.kinds import KINDS, ONCE
from tests.console import given_up
from tests.console.operators import Operator
from tests.console.rows import Broker

LINKED = re.compile(r'href="[^"]*[?&]action=([a-z_.]+)')
BUTTONS = re.compile(r'name="action" value="([a-z_.]+)"')
MINUTE = timedelta(minutes=1)
PAGES = (
    *(
        "transactions/pending/",
        "transactions/discarded/",
        "delays/",
        "actions/",
        "api-keys/",
        "users/",
        "namespaces/",
        "outboxes/",
        "schedules/",
    ),
    *("topics/", "topics/orders/", "producer-groups/", "producer-groups/shop/", "producer-groups/kiosk/"),
    *("consumer-groups/", "consumer-groups/mail/", "consumer-groups/stock/", "dead-letters/mail/"),
    *("subscriptions/", "subscriptions/sms/", "subscriptions/fax/"),
)


@pytest.fixture
def everything(broker: Broker) -> None:
    """A broker with one of everything that an action changes, in each state."""
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    broker.producer_group("kiosk", checks_paused=True)
    broker.endpoint(shop, "https://shop.example/checks", state="open")
    broker.half(shop, orders, b"x", 5 * MINUTE)
    broker.half(shop, orders, b"x", 5 * MINUTE, discarded_at=broker.now)
    message = broker.stored(orders, 0, b"x", MINUTE)
    mail, letters = broker.consumer_group("mail"), broker.topic("%DLQ%mail", queues=1)
    given_up.dead_letter(broker, mail, letters, message, 16, MINUTE)
    broker.consumer_group("stock")
    broker.connection.execute("UPDATE consumer_group SET paused = true WHERE name = 'stock'")
    given_up.subscription(broker, "sms", "mail", "orders", "https://sms.example/in", state="disabled")
    given_up.subscription(broker, "fax", "mail", "orders", "https://fax.example/in", paused=True)
    broker.connection.execute("INSERT INTO namespace (name) VALUES ('team')")
    for name, paused in (("till", False), ("kiosk", True)):
        broker.outbox(name, paused=paused)
        broker.schedule(name, paused=paused)
    broker.api_key("shop", hint="x2Qd", scopes=["manage"], digest=b"\xab" * 32)
    timer = {"log_segment": 1, "log_offset": message.log_offset, "tags_code": 0, "reconsume_times": 0}
    due = {"id": message.message_id, "due_at": broker.now + MINUTE, "topic_id": orders, "queue_id": 0}
    broker.insert("timer", message_id=message.message_id, **timer, **due)


def offered(operator: Operator) -> set[str]:
    """The kinds of action that pages lead an operator to."""
    found: set[str] = set()
    for path in PAGES:
        page = operator.sees(path)
        # Only an admin sees the users.
        assert page.status == 200 or (path, page.status) == ("users/", 403), path
        html = unquote(unescape(page.html))
        found |= {*LINKED.findall(html), *BUTTONS.findall(html)}
    return found


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_each_role_is_led_to_the_actions_that_it_may_do(
    everything: None, request: pytest.FixtureRequest, role: str
) -> None:
    operator: Operator = request.getfixturevalue({"viewer": "vic", "operator": "oda", "admin": "ada"}[role])
    known = {**{name: kind.action for name, kind in KINDS.items()}, **{name: one.action for name, one in ONCE.items()}}
    may = {"viewer": set[str](), "operator": set(roles.OPERATORS), "admin": set(known.values())}[role]

    assert offered(operator) == {name for name, action in known.items() if action in may}
