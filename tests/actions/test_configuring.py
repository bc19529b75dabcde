"""Topics, groups, endpoints, subscriptions and keys, made and changed from the console, and audited."""

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.actions.conftest import finished
from tests.actions.test_shown_once import secret_of
from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Wire
from tests.console.operators import Operator, Page
from tests.control.audits import Audit

Form = dict[str, object]
WHY = "the shop grows"


def does(operator: Operator, action: str, target: str, **given: str) -> Page:
    """Previews an action, and then does it; its page once it is done, which a worker does where it comes first, or the
    page of what is refused."""
    form = {"action": action, "target": target, **given}
    preview = operator.sees(f"actions/new/?{urlencode(form)}")
    assert preview.status == 200, preview.text
    made = operator.posts("actions/new/", {**form, "reason": WHY})
    return finished(operator, made) if made.status == 200 else made


def result(page: Page) -> str:
    """What became of the one target."""
    found = page.table("results")[0][-2]
    return found.split()[0]


def mistake_of(page: Page, field: str) -> str:
    """What a form says beside a field."""
    found = re.search(rf'id="id_{field}_error"[^>]*>([^<]*)<', page.html)
    assert found is not None, page.text
    return unescape(found[1])


def test_a_topic_is_made_grown_and_deleted(oda: Operator, ada: Operator, audit: Audit, wire: Wire) -> None:
    name = characters.name("orders")
    form = oda.follows(oda.sees("topics/"), "Make a topic")
    assert 'name="queues"' in form.html

    made = does(oda, "topic.make", name, queues="2", permission="rw", reserved_hours="24")
    grown = does(oda, "topic.change", name, queues="8", reserved_hours="", permission="r")

    assert (result(made), result(grown)) == ("done", "done")
    found = wire.get(f"/v1/topics/{name}").document
    assert (found["queues"], found["reserved_hours"], found["permission"]) == (8, None, "r")
    first, second = audit.of(name)
    assert (first["author"], first["action"], first["reason"], first["before"]) == ("oda", "topic.put", WHY, None)
    assert (second["before"]["queues"], second["after"]["queues"]) == (2, 8)
    assert result(does(ada, "topic.delete", name)) == "done"
    assert wire.get(f"/v1/topics/{name}").status == 404


def test_a_change_is_previewed_field_by_field(oda: Operator, wire: Wire, orders: str) -> None:
    wire.call("PUT", f"/v1/topics/{orders}", b'{"queues": 2}')

    form = oda.follows(oda.sees(f"topics/{orders}/"), "Change")
    preview = oda.sees(f"actions/new/?action=topic.change&target={orders}&queues=6&reserved_hours=&permission=rw")

    assert 'name="queues" value="2"' in form.html
    assert 'name="reason"' not in form.html
    assert preview.table("changes") == [["2 → 6"]]
    assert 'name="reason"' in preview.html
    assert wire.get(f"/v1/topics/{orders}").document["queues"] == 2


def test_a_preview_names_the_zone_of_a_time(oda: Operator, wire: Wire, orders: str) -> None:
    wire.call("PUT", f"/v1/topics/{orders}", b"{}")

    preview = oda.sees(f"actions/new/?action=topic.change&target={orders}&sends_from=2087-01-31T12:00:00%2B02:00")

    assert preview.table("changes") == [["the default → 2087-01-31T10:00:00 UTC"]]


def test_what_changes_nothing_or_has_no_right_value_is_not_done(
    oda: Operator, audit: Audit, wire: Wire, orders: str
) -> None:
    wire.call("PUT", f"/v1/topics/{orders}", b'{"queues": 2, "permission": "rw"}')
    same: Form = {"action": "topic.change", "target": orders, "queues": "2", "permission": "rw", "reason": WHY}
    wrong: Form = {**same, "queues": "many"}
    taken: Form = {**same, "action": "topic.make", "queues": "4"}
    nothing: Form = {**same, "target": "\0"}

    pages = [oda.posts("actions/new/", form) for form in (same, wrong, taken, nothing)]

    assert [page.status for page in pages] == [422] * 4
    assert "Nothing would change." in pages[0].text
    assert "It is no whole number from 1 to 1024." in pages[1].text
    assert 'value="many"' in pages[1].html
    assert f"The topic {orders} already exists: change it, or choose another name." in pages[2].text
    assert "The form contains a NUL character" in pages[3].text
    assert result(does(oda, "topic.change", orders, queues="1", permission="rw")) == "queue_illegal"
    assert [entry["result"] for entry in audit.of(orders) if entry["author"] == "oda"] == ["queue_illegal"]


def test_a_producer_group_is_made_limited_and_deleted(oda: Operator, ada: Operator, audit: Audit, wire: Wire) -> None:
    name = characters.name("order-service")

    does(oda, "producer_group.make", name, max_undecided="500", api_keys="shop-*, kiosk")
    does(oda, "producer_group.change", name, reject_transaction_message="yes", max_undecided="", api_keys="")

    found = wire.get(f"/v1/producer-groups/{name}").document
    assert (found["reject_transaction_message"], found["max_undecided"], found["api_keys"]) == (True, None, None)
    first, second = audit.of(name)
    assert (first["after"]["max_undecided"], first["after"]["api_keys"]) == (500, ["shop-*", "kiosk"])
    assert (second["action"], second["after"]["reject_transaction_message"]) == ("producer_group.put", True)
    assert result(does(oda, "producer_group.pause_checks", name)) == "done"
    assert wire.get(f"/v1/producer-groups/{name}").document["checks_paused"] is True
    assert result(does(oda, "producer_group.continue_checks", name)) == "done"
    assert result(does(ada, "producer_group.delete", name)) == "done"


def test_a_consumer_group_is_made_with_a_retry_policy_and_changed(
    oda: Operator, ada: Operator, audit: Audit, wire: Wire
) -> None:
    name = characters.name("coupon-service")

    made = does(oda, "consumer_group.make", name, start_at="latest", ordered="yes", retry_policy='{"kind": "none"}')
    changed = does(oda, "consumer_group.change", name, max_reconsume_times="3", ordered="no", start_at="latest")

    assert (result(made), result(changed)) == ("done", "done")
    found = wire.get(f"/v1/consumer-groups/{name}").document
    assert (found["start_at"], found["ordered"], found["max_reconsume_times"]) == ("latest", False, 3)
    assert found["retry_policy"] == {"kind": "none"}
    assert [entry["action"] for entry in audit.of(name)] == ["consumer_group.put"] * 2
    assert result(does(ada, "consumer_group.delete", name)) == "done"


def test_an_endpoint_is_paced_by_an_operator_and_moved_by_an_admin(
    oda: Operator, ada: Operator, audit: Audit, wire: Wire, endpoint: ProducerEndpoint
) -> None:
    group = characters.name("order-service")
    wire.call("PUT", f"/v1/producer-groups/{group}", b"{}")
    form: Form = {"action": "endpoint.register", "target": group, "url": endpoint.url, "max_batch": "7", "reason": WHY}
    secret_of(ada.posts("actions/once/", form))
    [found] = wire.get(f"/v1/producer-groups/{group}/endpoints").document["results"]
    target, path = f"{group} endpoint {found['id']}", f"/v1/producer-groups/{group}/endpoints/{found['id']}"

    paced = does(oda, "endpoint.change", target, max_batch="100", timeout_seconds="2.5", concurrency="4")
    refused = oda.posts("actions/new/", {"action": "endpoint.move", "target": target, "url": "x", "reason": WHY})
    moved = does(ada, "endpoint.move", target, url=f"{endpoint.url}/other")
    away = does(ada, "endpoint.move", target, url="http://10.1.2.3/checks")

    assert found["max_batch"] == 7
    assert (result(paced), refused.status, result(moved), result(away)) == ("done", 403, "done", "message_illegal")
    now = wire.get(path).document
    assert (now["max_batch"], now["timeout_seconds"], now["concurrency"]) == (100, 2.5, 4)
    assert now["url"] == f"{endpoint.url}/other"
    assert [entry["author"] for entry in audit.of(target)] == ["oda", "ada", "ada"]
    assert "Change the URL" not in oda.sees(f"producer-groups/{group}/").links
    assert "Change the URL" in ada.sees(f"producer-groups/{group}/").links
    assert result(does(ada, "endpoint.delete", target)) == "done"
    assert wire.get(path).status == 404


def test_a_subscription_is_made_paced_moved_and_deleted(
    oda: Operator, ada: Operator, audit: Audit, wire: Wire, consumer: Consumer, orders: str, endpoint: ProducerEndpoint
) -> None:
    name = characters.name("mail")
    wire.call("PUT", f"/v1/topics/{orders}", b"{}")
    form: Form = {
        "action": "subscription.make",
        "target": name,
        "group_name": consumer.group,
        "topic_name": orders,
        "url": endpoint.url,
        "filter": '{"sql": "price > 10"}',
        "reason": WHY,
    }

    first = secret_of(ada.posts("actions/once/", form))
    again = ada.posts("actions/once/", form)
    paced = does(oda, "subscription.change", name, max_batch="5", timeout_seconds="3", concurrency="2")
    refused = oda.posts("actions/new/", {"action": "subscription.move", "target": name, "url": "x", "reason": WHY})
    moved = does(ada, "subscription.move", name, group_name=consumer.group, topic_name=orders, url=endpoint.url)
    emptied = does(
        ada, "subscription.move", name, group_name=consumer.group, topic_name=orders, url=endpoint.url, filter="A || B"
    )

    assert again.status == 422
    assert (result(paced), refused.status) == ("done", 403)
    assert moved.status == 422, "what is left out of the form stays as it is"
    assert result(emptied) == "done"
    found = wire.get(f"/v1/subscriptions/{name}").document
    assert (found["filter"], found["max_batch"], found["timeout_seconds"]) == ("A || B", 5, 3.0)
    assert first not in str(audit.of(name))
    assert next(entry["action"] for entry in audit.of(name)) == "subscription.put"
    for kind in ("pause", "continue"):
        assert result(does(oda, f"subscription.{kind}", name)) == "done"
    rotated: Form = {"action": "subscription.rotate_secret", "target": name, "reason": WHY}
    assert secret_of(ada.posts("actions/once/", rotated)) != first
    assert result(does(ada, "subscription.delete", name)) == "done"
    assert wire.get(f"/v1/subscriptions/{name}").status == 404


def test_a_subscription_that_gave_up_is_called_again(
    broker: RunningBroker, oda: Operator, audit: Audit, wire: Wire, consumer: Consumer, orders: str
) -> None:
    name = characters.name("mail")
    wire.call("PUT", f"/v1/topics/{orders}", b"{}")
    given = b'{"group": "%s", "topic": "%s", "url": "http://127.0.0.1:9/"}' % (consumer.group.encode(), orders.encode())
    assert wire.call("PUT", f"/v1/subscriptions/{name}", given).status == 201
    assert "Call again" not in oda.sees(f"subscriptions/{name}/").links
    audit.connection.execute("UPDATE subscription SET state = 'disabled' WHERE name = %s", (name,))

    assert "Call again" in oda.sees(f"subscriptions/{name}/").links
    assert result(does(oda, "subscription.enable", name)) == "done"

    assert wire.get(f"/v1/subscriptions/{name}").document["state"] == "healthy"


def test_the_scopes_and_the_end_of_a_key_are_changed_by_an_admin(ada: Operator, audit: Audit, wire: Wire) -> None:
    name = characters.name("shop-key")
    form: Form = {"action": "key.make", "target": name, "scopes": "manage", "reason": WHY}
    secret_of(ada.posts("actions/once/", {**form, "expires_at": "2087-01-31T12:00:00Z"}))
    assert wire.get(f"/v1/api-keys/{name}").document["expires_at"].startswith("2087-01-31T12:00:00")

    changed = does(ada, "key.change", name, scopes="metrics read:orders", expires_at="")

    assert result(changed) == "done"
    found = wire.get(f"/v1/api-keys/{name}").document
    assert (found["scopes"], found["expires_at"]) == (["metrics", "read:orders"], None)
    assert [entry["action"] for entry in audit.of(name)] == ["key.make", "key.change"]


@pytest.mark.parametrize(
    ("action", "field", "typed", "mistake"),
    [
        ("topic.make", "queues", "many", "It is no whole number from 1 to 1024."),
        ("topic.make", "queues", "1025", "It is no whole number from 1 to 1024."),
        ("topic.make", "permission", "x", "It is none of rw, r, w."),
        ("producer_group.make", "api_keys", "shop,a|b", "'a|b': 100 at most, and each is the name of an API key, or"),
        ("producer_group.make", "checks_paused", "perhaps", "It is neither yes nor no."),
        ("consumer_group.make", "retry_policy", '{"kind": "sometimes"}', "retry_policy is not valid: kind is"),
        ("consumer_group.make", "retry_policy", "{kind", "It is no JSON: "),
    ],
)
def test_a_form_keeps_what_was_typed_and_says_the_mistake_beside_the_field(
    oda: Operator, audit: Audit, action: str, field: str, typed: str, mistake: str
) -> None:
    name = characters.name("new")
    form: Form = {"action": action, "target": name, field: typed, "reason": WHY}

    pages = [oda.sees(f"actions/new/?{urlencode(form)}"), oda.posts("actions/new/", form)]

    for page in pages:
        assert page.status == 422
        beside = mistake_of(page, field)
        assert beside.startswith(mistake)
        assert f'value="{typed}"' in unescape(page.html) or field in ("permission", "checks_paused")
        assert 'id="action"' not in page.html, "nothing can be done before it is mended"
    assert audit.of(name) == []


def test_a_form_whose_outcome_is_shown_once_keeps_what_was_typed(
    ada: Operator, audit: Audit, wire: Wire, consumer: Consumer, orders: str
) -> None:
    wire.call("PUT", f"/v1/topics/{orders}", b"{}")
    name = characters.name("mail")
    scopes: Form = {"action": "key.make", "target": name, "scopes": "everything", "reason": WHY}
    push = {"group_name": consumer.group, "topic_name": orders, "url": "http://10.1.2.3/in", "filter": "{sql"}
    form: Form = {"action": "subscription.make", "target": name, **push, "max_batch": "none", "reason": WHY}

    key, wrong = ada.posts("actions/once/", scopes), ada.posts("actions/once/", form)
    refused = ada.posts("actions/once/", {**form, "filter": "A", "max_batch": "7"})

    assert (key.status, wrong.status, refused.status) == (422, 422, 422)
    assert mistake_of(key, "scopes").startswith("'everything': 100 at most, and each is a scope is manage, metrics")
    assert mistake_of(wrong, "max_batch").startswith("It is no whole number from 1 to ")
    assert mistake_of(wrong, "filter").startswith("It is no JSON")
    for page in (wrong, refused):
        assert f'name="url" value="{push["url"]}"' in page.html
        assert f'name="reason" value="{WHY}"' in page.html
    assert "10.1.2.3" in refused.text, "what the registry refuses stands above the form"
    assert 'name="max_batch" value="7"' in refused.html
    assert [entry["result"] for entry in audit.of(name)] == ["message_illegal"]


@pytest.mark.parametrize(("narrowed", "words"), [("last_reason", "no such address"), ("tags", "gift")])
def test_only_the_dead_letters_that_match_are_redriven(
    broker: RunningBroker,
    oda: Operator,
    audit: Audit,
    producer: Producer,
    consumer: Consumer,
    orders: str,
    narrowed: str,
    words: str,
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    reasons = {"gift": "no such address", "paid": "greylisted"}
    for number in range(6):
        producer.send(orders, f"order {number}".encode(), tags=("gift", "paid")[number % 2], queue_id=0)
    while deliveries := consumer.receive(orders):
        for delivery in deliveries:
            consumer.nack([delivery], reason=reasons[delivery.message.tags or ""])
    page = oda.sees(f"dead-letters/{consumer.group}/?{urlencode({narrowed.removeprefix('last_'): words})}")

    preview = oda.follows(page, "Redrive all that match")
    matching = {"action": "dead_letter.redrive", "all": "1", "group": consumer.group, narrowed: words}
    canary = oda.posts("actions/new/", {**matching, "most": "1", "reason": WHY})
    first = bodies(received_until_empty(consumer, orders))

    assert "3 dead letters that match" in preview.text
    assert [cells[0].split("; ")[0] for cells in preview.table("preview")] == [orders] * 3
    assert (canary.figure("progress"), first) == ("1 of 1", [b"order 0"])
    assert "2 dead letters that match" in oda.follows(page, "Redrive all that match").text
