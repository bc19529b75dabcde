"""The audit: each change of the control plane has an entry, in the change's own transaction, that is never changed."""

import random
import string
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.control.audits import Audit
from tests.control.operators import Operator

SECRET = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cyBpcyBsb25n"
AUTHOR = ("key", "given at the start")


@pytest.fixture
def audit(broker: RunningBroker) -> Iterator[Audit]:
    with Audit.of_broker(broker) as audit:
        yield audit


def test_each_change_of_the_configuration_has_an_entry_without_secrets(
    operator: Operator, audit: Audit, orders: str, shop: str
) -> None:
    group, name = characters.name("coupons"), characters.name("mails")
    operator.put(f"/v1/consumer-groups/{group}")
    operator.put(f"/v1/topics/{orders}")
    operator.put(f"/v1/producer-groups/{shop}")
    endpoints = f"/v1/producer-groups/{shop}/endpoints"
    made = operator.make(endpoints, url="http://127.0.0.1:9/checks", secret=SECRET).document
    push = {"group": group, "topic": orders, "url": "http://127.0.0.1:9/push", "secret": SECRET}
    calls: tuple[tuple[str, str, str, dict[str, Any] | None], ...] = (
        ("topic.put", "PUT", f"/v1/topics/{orders}", {"queues": 8}),
        ("producer_group.put", "PUT", f"/v1/producer-groups/{shop}", {"checks_paused": True}),
        ("endpoint.register", "POST", endpoints, {"url": "http://127.0.0.1:9/more"}),
        ("endpoint.change", "PUT", f"{endpoints}/{made['id']}", {"max_batch": 7}),
        ("endpoint.rotate_secret", "POST", f"{endpoints}/{made['id']}/rotate-secret", {"secret": SECRET[:-4] + "AAAA"}),
        ("consumer_group.put", "PUT", f"/v1/consumer-groups/{group}", {"paused": True}),
        ("subscription.change", "PUT", f"/v1/subscriptions/{name}", push),
        ("subscription.rotate_secret", "POST", f"/v1/subscriptions/{name}/rotate-secret", {}),
        ("key.make", "POST", "/v1/api-keys", {"name": name, "scopes": ["produce:*"]}),
        ("key.change", "PUT", f"/v1/api-keys/{name}", {"scopes": ["manage"]}),
        ("key.revoke", "DELETE", f"/v1/api-keys/{name}", None),
        ("subscription.delete", "DELETE", f"/v1/subscriptions/{name}", None),
        ("endpoint.delete", "DELETE", f"{endpoints}/{made['id']}", None),
        ("consumer_group.delete", "DELETE", f"/v1/consumer-groups/{group}", None),
        ("producer_group.delete", "DELETE", f"/v1/producer-groups/{shop}", None),
        ("topic.delete", "DELETE", f"/v1/topics/{orders}", None),
    )

    for action, method, path, given in calls:
        answer = operator.asks(method, path, given)
        assert answer.status < 300, (path, answer)
        [entry] = audit.by_request(answer.headers["x-request-id"])
        assert (entry["author_kind"], entry["author"]) == AUTHOR
        assert (entry["action"], entry["result"]) == (action, "done")
        assert entry["before"] != entry["after"] or "rotate" in action
        assert "whsec_" not in str(entry)
        assert "digest" not in str(entry)
    [*_, grown] = [entry for entry in audit.of(orders) if entry["action"] == "topic.put"]
    assert (grown["before"]["queues"], grown["after"]["queues"]) == (4, 8)


def test_a_decision_has_an_entry_with_its_reason_and_the_state_before(
    operator: Operator, audit: Audit, producer: Producer, orders: str
) -> None:
    pending = str(producer.begin(orders, b"order 4711").transaction_id)
    path = f"/v1/transactions/{pending}"

    operator.make(f"{path}/check")
    operator.make(f"{path}/resolve", state="COMMIT", reason="the order is paid")
    operator.make(f"{path}/resolve", state="COMMIT", reason="again")
    operator.make(f"{path}/resolve", state="ROLLBACK", reason="too late")

    found = audit.of(pending)
    assert [(one["action"], one["result"], one["reason"]) for one in found] == [
        ("transaction.check", "done", None),
        ("transaction.commit", "done", "the order is paid"),
        ("transaction.commit", "unchanged", "again"),
        ("transaction.rollback", "transaction_ended", "too late"),
    ]
    assert (found[1]["before"], found[1]["after"]["state"]) == ({"state": "PREPARED"}, "COMMITTED")
    assert found[3]["detail"].endswith("is already COMMITTED, decided by operator: this ROLLBACK comes too late.")


def test_a_reset_and_a_redrive_have_their_entries(
    broker: RunningBroker, operator: Operator, audit: Audit, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    [first, second] = [str(producer.send(orders, b"order", queue_id=0).message_id) for _ in range(2)]
    consumer.nack(consumer.receive(orders))
    offsets = f"/v1/consumer-groups/{consumer.group}/offsets"

    operator.make(f"/v1/dead-letters/{consumer.group}/redrive", message_ids=[first])
    operator.make(f"/v1/dead-letters/{consumer.group}/redrive", message_ids=[first])
    operator.put(offsets, topic=orders, to="earliest", queue_id=0, dry_run=True)
    operator.put(offsets, topic=orders, to="earliest", queue_id=0)

    assert [entry["result"] for entry in audit.of(first)] == ["done", "message_not_found"]
    assert audit.of(second) == []
    [reset] = [entry for entry in audit.of(consumer.group) if entry["action"] == "offsets.reset"]
    assert reset["before"] == {"0": 2}
    assert reset["after"] == {
        "topic": orders,
        "queues": [{"queue_id": 0, "from": 2, "to": 0, "replayed": 2, "skipped": 0}],
    }


def test_a_refused_change_has_an_entry_that_says_so(operator: Operator, audit: Audit, shop: str) -> None:
    answer = operator.delete(f"/v1/producer-groups/{shop}")

    [entry] = audit.by_request(answer.headers["x-request-id"])
    assert (entry["target"], entry["result"], entry["after"]) == (shop, "group_not_exist", None)
    assert entry["detail"] == answer.problem["detail"]


def test_a_refused_change_of_a_name_of_any_length_has_an_entry_with_its_beginning(
    operator: Operator, audit: Audit
) -> None:
    long = "".join(random.Random(1).choices(string.ascii_letters, k=9000))

    assert operator.put(f"/v1/topics/{long}").problem["code"] == "topic_illegal"

    assert audit.of(long[:200])[-1]["result"] == "topic_illegal"


def test_a_change_whose_entry_cannot_be_written_is_not_made(
    operator: Operator, audit: Audit, producer: Producer, orders: str, shop: str
) -> None:
    pending = str(producer.begin(orders, b"order 4711").transaction_id)
    audit.connection.execute(
        f"ALTER TABLE audit_entry ADD CONSTRAINT of_test CHECK (target NOT IN ('{pending}', '{shop}')) NOT VALID"
    )
    try:
        put = operator.put(f"/v1/topics/{shop}")
        resolved = operator.make(f"/v1/transactions/{pending}/resolve", state="COMMIT", reason="the order is paid")
    finally:
        audit.connection.execute("ALTER TABLE audit_entry DROP CONSTRAINT of_test")

    assert (put.status, resolved.status) == (500, 500)
    assert operator.get(f"/v1/topics/{shop}").status == 404
    assert operator.reads(f"/v1/transactions/{pending}")["state"] == "PREPARED"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entry SET author = 'another'",
        "DELETE FROM audit_entry",
        "DELETE FROM audit_entry WHERE false",
        "TRUNCATE audit_entry",
    ],
)
def test_the_database_refuses_to_change_an_entry(operator: Operator, audit: Audit, shop: str, statement: str) -> None:
    operator.put(f"/v1/topics/{shop}")

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="audit_entry takes new rows only"):
        audit.connection.execute(statement.encode())

    assert len(audit.of(shop)) == 1
