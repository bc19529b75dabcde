"""The order service: takes an order, pays it in its own database, and ends its transaction or answers a check."""

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from mqbroker_client import (
    Admin,
    Broker,
    BrokerError,
    CheckListener,
    HalfMessage,
    LocalTransactionState,
    Producer,
    Retry,
)
from mqbroker_client.errors import NotFound
from mqbroker_client.producers import Transaction

from examples.shop import accidents, workers
from examples.shop.accidents import Accident
from examples.shop.order_book import CardDeclined, OrderAbandoned, OrderBook

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

log = logging.getLogger("shop.orders")

# Short, because a payment here takes milliseconds; the broker has a lower bound of its own.
CHECK_IMMUNITY_SECONDS = 2
MAX_ORDER_BYTES = 10_000
CHECKS_PATH = "/checks"


@dataclass(frozen=True)
class Order:
    """A customer's order. Its id, made by the customer, is also the transaction's: an order sent twice is one order."""

    order_id: UUID
    number: int
    amount_cents: int


@dataclass(frozen=True)
class OrderService:
    producer: Producer
    book: OrderBook
    topic: str
    check_url: str

    def take(self, order: Order) -> None:
        """Half message, local transaction, end. When the end is lost, the broker calls `check`."""
        accident = accidents.of_order(order.number)
        transaction = self.producer.begin(
            self.topic,
            json.dumps({"order_id": str(order.order_id), "amount_cents": order.amount_cents}).encode(),
            keys=[str(order.order_id)],
            message_id=order.order_id,
            transaction_id=order.order_id,
            check_immunity_seconds=CHECK_IMMUNITY_SECONDS,
            check_url=self.check_url,
        )
        try:
            self.book.pay(order.order_id, order.amount_cents, card_is_good=not accident.fails_payment)
        except (CardDeclined, OrderAbandoned):
            self._end(transaction, LocalTransactionState.ROLLBACK, accident)
            raise
        if accident is Accident.CRASH:
            os.kill(os.getpid(), signal.SIGKILL)
        self._end(transaction, LocalTransactionState.COMMIT, accident)

    def check(self, half: HalfMessage) -> LocalTransactionState:
        if self.book.is_paid_for_good(half.transaction_id):
            return LocalTransactionState.COMMIT
        return LocalTransactionState.ROLLBACK

    def _end(self, transaction: Transaction, state: LocalTransactionState, accident: Accident) -> None:
        if accident.loses_end:
            return
        try:
            self.producer.end(transaction.transaction_id, state)
        except BrokerError as error:
            log.warning("order %s: %s was not sent, a check ends it: %s", transaction.transaction_id, state, error)


class Application:
    """POST /orders for customers, POST /checks for the broker."""

    def __init__(self, service: OrderService, secret: str) -> None:
        self.service = service
        self.checks = CheckListener(service.check, [secret])

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if environ["PATH_INFO"] == CHECKS_PATH:
            return self.checks.wsgi(environ, start_response)
        status, document = self._answer(environ)
        start_response(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
        return [json.dumps(document).encode()]

    def _answer(self, environ: "WSGIEnvironment") -> tuple[HTTPStatus, dict[str, str]]:
        if (environ["REQUEST_METHOD"], environ["PATH_INFO"]) != ("POST", "/orders"):
            return HTTPStatus.NOT_FOUND, {"detail": "orders are taken by POST /orders"}
        try:
            order = _read(environ)
        except (ValueError, KeyError, TypeError) as error:
            return HTTPStatus.BAD_REQUEST, {"detail": f"not an order: {type(error).__name__}: {error}"}
        try:
            self.service.take(order)
        except CardDeclined as error:
            return HTTPStatus.PAYMENT_REQUIRED, {"detail": str(error)}
        except OrderAbandoned as error:
            return HTTPStatus.CONFLICT, {"detail": str(error)}
        except BrokerError as error:
            # No half, so nothing was paid. If it was stored after all, its check finds no order and rolls it back.
            return HTTPStatus.SERVICE_UNAVAILABLE, {"detail": f"the broker did not take the order: {error}"}
        return HTTPStatus.CREATED, {"order_id": str(order.order_id), "state": "paid"}


def _read(environ: "WSGIEnvironment") -> Order:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > MAX_ORDER_BYTES:
        raise ValueError(f"an order has at most {MAX_ORDER_BYTES} bytes")
    document = json.loads(environ["wsgi.input"].read(length))
    return Order(UUID(document["order_id"]), int(document["number"]), int(document["amount_cents"]))


def main() -> None:
    options = _options()
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    api_key = os.environ["SHOP_API_KEY"]
    listening = workers.listen(options.host, options.port)
    url = f"http://{options.host}:{listening.getsockname()[1]}"
    endpoint_id, secret = _register(options, api_key, url + CHECKS_PATH)

    def application() -> Application:
        producer = Producer(Broker(options.broker, api_key), options.group)
        service = OrderService(producer, OrderBook(options.database), options.topic, url + CHECKS_PATH)
        return Application(service, secret)

    print(f"ready {url}", flush=True)
    workers.serve(listening, application, options.workers, sys.stdin.fileno())
    _delete(options, api_key, [endpoint_id], Retry(tries=1, seconds=2))


def _register(options: argparse.Namespace, api_key: str, check_url: str) -> tuple[str, str]:
    """Register the check endpoint, in place of those of a predecessor that was killed."""
    book = OrderBook(options.database)
    predecessors = book.endpoints()
    with Broker(options.broker, api_key) as broker:
        endpoint = Admin(broker).register_endpoint(options.group, check_url)
    book.remember_endpoint(endpoint.id)
    book.close()
    _delete(options, api_key, predecessors, Retry(tries=1))
    return endpoint.id, endpoint.secret


def _delete(options: argparse.Namespace, api_key: str, endpoint_ids: Iterable[str], retry: Retry) -> None:
    book = OrderBook(options.database)
    with Broker(options.broker, api_key, retry=retry) as broker:
        for endpoint_id in endpoint_ids:
            try:
                Admin(broker).delete_endpoint(options.group, endpoint_id)
            except NotFound:
                pass
            except BrokerError as error:
                # It stays in the book, and the next start deletes it.
                log.warning("endpoint %s was not deleted: %s", endpoint_id, error)
                continue
            book.forget_endpoint(endpoint_id)
    book.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", required=True)
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
