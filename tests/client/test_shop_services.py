"""The shop's services as real processes: a crash costs one request, checks are answered from the books."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
import urllib3
from mqbroker_client.ids import uuid7
from standardwebhooks import Webhook

from examples.shop.coupon_book import CouponBook
from examples.shop.order_book import OrderBook
from examples.shop.shop import Service
from tests.client.answers import CHECK, COMMITTED, ENTRY, MESSAGE, PREPARED
from tests.client.servers import Answer, HangUp, ScriptedServer, busy, scripted

ENDPOINT = Answer(201, {"id": 5})
ORDINARY, COMMIT_LOST, CRASH, DECLINED, ROLLBACK_LOST = 0, 2, 4, 6, 8


@contextmanager
def order_service(broker: ScriptedServer, database: Path, *options: str) -> Iterator[Service]:
    names = ("--broker", broker.url, "--topic", "orders", "--group", "shop")
    service = Service.start("orders", "mq_key", *names, "--database", database, *options)
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.stop()


def order(service: Service, number: int, order_id: UUID) -> int:
    body = json.dumps({"order_id": str(order_id), "number": number, "amount_cents": 100}).encode()
    return urllib3.request("POST", f"{service.ready}/orders", body=body, retries=False, timeout=10).status


def check(broker: ScriptedServer, service: Service, order_id: UUID) -> str:
    """What the service says when the broker asks, signed with the secret that it registered."""
    entry = CHECK | {"transaction_id": str(order_id)}
    body = json.dumps({"type": "transaction.check", "producer_group": "shop", "transactions": [entry]})
    now = datetime.now(UTC)
    headers = {
        "webhook-id": "check-1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(broker.asked[0].body["secret"]).sign("check-1", now, body),
    }
    answer = urllib3.request("POST", f"{service.ready}/checks", body=body.encode(), headers=headers, timeout=10)
    return str(json.loads(answer.data)["results"][0]["state"])


def ends(broker: ScriptedServer) -> list[str]:
    return [asked.body["state"] for asked in broker.asked if asked.path.endswith("/end")]


@pytest.mark.parametrize(
    ("number", "status", "sent", "answer"),
    [
        (ORDINARY, 201, ["COMMIT"], "COMMIT"),
        (COMMIT_LOST, 201, [], "COMMIT"),
        (DECLINED, 402, ["ROLLBACK"], "ROLLBACK"),
        (ROLLBACK_LOST, 402, [], "ROLLBACK"),
    ],
)
def test_an_order_meets_the_accident_of_its_number(
    tmp_path: Path, number: int, status: int, sent: list[str], answer: str
) -> None:
    order_id = uuid7()
    with scripted(ENDPOINT, PREPARED, COMMITTED) as broker, order_service(broker, tmp_path / "orders") as service:
        assert order(service, number, order_id) == status
        assert ends(broker) == sent
        assert check(broker, service, order_id) == answer


def test_a_crash_after_payment_costs_its_own_request_and_the_check_knows_the_order(tmp_path: Path) -> None:
    crashed, unknown = uuid7(), uuid7()
    with scripted(ENDPOINT, PREPARED) as broker, order_service(broker, tmp_path / "orders") as service:
        for _ in range(3):
            with pytest.raises(urllib3.exceptions.ProtocolError):
                order(service, CRASH, crashed)

        assert ends(broker) == []
        assert check(broker, service, crashed) == "COMMIT"
        assert check(broker, service, unknown) == "ROLLBACK"


def test_the_broker_asks_at_the_address_that_the_service_is_given(tmp_path: Path) -> None:
    given = ("--host", "127.0.0.2")
    with scripted(ENDPOINT) as broker, order_service(broker, tmp_path / "orders", *given) as service:
        assert service.ready.startswith("http://127.0.0.2:")
        assert broker.asked[0].body["url"] == f"{service.ready}/checks"
        assert check(broker, service, uuid7()) == "ROLLBACK"


def test_an_order_that_the_broker_does_not_take_is_not_paid(tmp_path: Path) -> None:
    refused = Answer(403, {"code": "transactions_rejected", "detail": "Halves are refused."})
    with scripted(ENDPOINT, refused) as broker, order_service(broker, tmp_path / "orders") as service:
        assert order(service, ORDINARY, uuid7()) == 503

    assert OrderBook(tmp_path / "orders").paid() == set()


def test_a_lost_end_leaves_the_customers_order_paid(tmp_path: Path) -> None:
    order_id = uuid7()
    gone = Answer(404, {"code": "transaction_not_found", "detail": "No such transaction."})
    with scripted(ENDPOINT, PREPARED, gone) as broker, order_service(broker, tmp_path / "orders") as service:
        assert order(service, ORDINARY, order_id) == 201

    assert OrderBook(tmp_path / "orders").paid() == {str(order_id)}


def test_a_stop_takes_the_endpoint_away_and_a_kill_leaves_that_to_the_next_start(tmp_path: Path) -> None:
    with scripted(ENDPOINT) as broker:
        with order_service(broker, tmp_path / "orders") as killed:
            killed.process.kill()
        assert OrderBook(tmp_path / "orders").endpoints() == ["5"]

    with scripted(Answer(201, {"id": 6}), Answer(204, b"")) as broker:
        with order_service(broker, tmp_path / "orders") as service:
            assert OrderBook(tmp_path / "orders").endpoints() == ["6"]
        assert service.process.returncode == 0

    assert OrderBook(tmp_path / "orders").endpoints() == []
    assert [asked.path.rsplit("/", 1)[1] for asked in broker.asked if asked.method == "DELETE"] == ["5", "6"]


def test_the_workers_end_with_a_service_that_is_killed(tmp_path: Path) -> None:
    with scripted(ENDPOINT) as broker, order_service(broker, tmp_path / "orders") as service:
        os.kill(service.process.pid, signal.SIGKILL)
        service.process.wait()
        # Its standard output is held open by every one of its processes: the end of it is the end of them all.
        assert service.process.stdout
        assert service.process.stdout.read() == ""


def test_the_coupon_service_outlives_a_bad_broker_and_takes_what_is_left_before_it_stops(tmp_path: Path) -> None:
    received = Answer(200, {"messages": [entry_of("order-1"), entry_of("order-2")]})
    nothing = Answer(200, {"messages": []})
    done = Answer(200, {"results": []})
    refused = Answer(403, {"code": "no_permission", "detail": "The key may not consume."})
    with scripted(refused, HangUp(), busy(), received, done, received, done, nothing) as broker:
        service = Service.start(
            "coupons", "key", "--broker", broker.url, "--topic", "orders", "--group", "c", "--database", tmp_path / "c"
        )
        service.wait_until_ready()
        broker.wait_for(requests=5)
        service.stop()

    assert service.process.returncode == 0
    assert CouponBook(tmp_path / "c").deliveries() == {"order-1": 2, "order-2": 2}


def entry_of(order_id: str) -> dict[str, object]:
    return ENTRY | {"message": MESSAGE | {"body": json.dumps({"order_id": order_id})}}
