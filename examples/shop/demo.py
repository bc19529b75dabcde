"""Runs the shop: so many orders and a reconciliation, or a gentle trade that goes on until it is stopped."""

import argparse
import itertools
import logging
import os
import random
import secrets
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from mqbroker_client import Broker, BrokerError, Producer
from mqbroker_client.ids import uuid7

from examples.shop import decisions
from examples.shop.customers import Customers
from examples.shop.reconciliation import reconcile
from examples.shop.shop import Names, Shop, ShopFailed

POLL_SECONDS = 0.5
BROKER_START_SECONDS = 60
# The live trade: an order each four seconds or so, and a line each hundred orders.
SECONDS_BETWEEN_ORDERS = (2.0, 6.0)
ORDERS_PER_LINE = 100


def main() -> int:
    options = _options()
    logging.basicConfig(format="shop: %(message)s", level=logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        return _open(options, stop)
    except (ShopFailed, BrokerError) as error:
        if stop.is_set() and options.forever:
            return 0
        print(f"shop: {error}", file=sys.stderr)
        return 1


def _open(options: argparse.Namespace, stop: threading.Event) -> int:
    with Broker(options.broker, options.api_key) as broker:
        _wait_for(broker, stop)
        names = Names(options.run)
        with Shop(broker, options.api_key, names, options.workers, options.data_dir, options.host) as shop:
            return _trade(shop, stop) if options.forever else _run(shop, options, stop)


def _run(shop: Shop, options: argparse.Namespace, stop: threading.Event) -> int:
    """All orders, then the reconciliation; 0 only when everything was decided and the books agree."""
    began = time.monotonic()
    order_ids = [uuid7() for _ in range(options.orders)]
    print(f"{options.orders} orders go to {shop.url}, their messages to the topic {shop.names.topic}", flush=True)
    answers = Customers(shop.url, stop).order_all(enumerate(order_ids), options.concurrency)
    words = ", ".join(f"{count} {word}" for word, count in answers.most_common())
    print(f"customers, after {time.monotonic() - began:.1f} s: {words}", flush=True)

    decided = _settle(shop, order_ids, began + options.seconds, stop)
    if stop.is_set():
        print("shop: stopped before the end, so there is nothing to reconcile", file=sys.stderr)
        return 1
    print(f"decided and delivered after {time.monotonic() - began:.1f} s", flush=True)
    result = reconcile(shop.paid(), shop.deliveries(), list(decided.values()).count(decisions.CHECK))
    print(result, flush=True)
    undecided = options.orders - len(decided)
    if undecided:
        print(f"shop: {undecided} orders are undecided after {options.seconds:g} s", file=sys.stderr)
    return 0 if result.holds and not undecided else 1


def _settle(shop: Shop, order_ids: Sequence[UUID], give_up_at: float, stop: threading.Event) -> dict[UUID, str]:
    """Wait until every order is decided and every paid one has its coupon, or until `give_up_at`; what ended each."""
    producer = Producer(shop.broker, shop.names.producer_group)
    decided = decisions.wait_for_all(producer, order_ids, give_up_at, stop)
    while shop.paid() - shop.deliveries().keys() and time.monotonic() < give_up_at and not stop.wait(POLL_SECONDS):
        shop.require_services()
    # The service ends after an empty receive: a message that is twice, or should not be there, has arrived by then.
    shop.coupons.stop()
    return decided


def _trade(shop: Shop, stop: threading.Event) -> int:
    """An order now and then, until `stop` is set or the process that started this one is gone."""
    starter = os.getppid()
    customers = Customers(shop.url, stop)
    print(f"shop: an order now and then goes to the topic {shop.names.topic}", flush=True)
    for number in itertools.count():
        if stop.wait(random.uniform(*SECONDS_BETWEEN_ORDERS)) or os.getppid() != starter:
            return 0
        shop.require_services()
        customers.order(number, uuid7())
        if number % ORDERS_PER_LINE == ORDERS_PER_LINE - 1:
            print(f"shop: {len(shop.paid())} orders paid, {len(shop.deliveries())} coupons issued", flush=True)
    return 0


def _wait_for(broker: Broker, stop: threading.Event) -> None:
    give_up_at = time.monotonic() + BROKER_START_SECONDS
    while not stop.is_set():
        try:
            broker.call("GET", "/readyz")
        except BrokerError:
            if time.monotonic() > give_up_at:
                raise
        else:
            return
        stop.wait(POLL_SECONDS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.shop", description=__doc__)
    parser.add_argument("--broker", default="http://127.0.0.1:8000", help="the broker's address (%(default)s)")
    parser.add_argument("--api-key", default=os.environ.get("SHOP_API_KEY"), help="or SHOP_API_KEY; needs all scopes")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address of this machine where the broker asks the order service (%(default)s); its network must be among "
        "MQBROKER_WEBHOOK_ALLOWED_NETWORKS",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--orders", type=int, default=100, help="how many, before the reconciliation (%(default)s)")
    length.add_argument("--forever", action="store_true", help="an order now and then, until SIGTERM or Ctrl-C")
    parser.add_argument("--concurrency", type=int, default=8, help="customers at a time (%(default)s)")
    parser.add_argument("--seconds", type=float, default=150, help="limit of a run with --orders (%(default)s)")
    parser.add_argument("--workers", type=int, help="processes of the order service (8, or 2 with --forever)")
    parser.add_argument(
        "--data-dir",
        type=Path,
        help="keeps both databases (a temporary folder; with --forever, where it is set, MQBROKER_DATA_DIR/shop)",
    )
    parser.add_argument(
        "--run", help="suffix of topic and groups, so that runs do not mix (random; none with --forever)"
    )
    options = parser.parse_args()
    if not options.api_key:
        parser.error("--api-key or SHOP_API_KEY is needed")
    if options.workers is None:
        options.workers = 2 if options.forever else 8
    if options.data_dir is None and options.forever and "MQBROKER_DATA_DIR" in os.environ:
        # Half messages of an earlier trade are checked at the next start: its books must still be there.
        options.data_dir = Path(os.environ["MQBROKER_DATA_DIR"]) / "shop"
    if options.run is None:
        options.run = "" if options.forever else secrets.token_hex(3)
    return options
