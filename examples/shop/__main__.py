"""`python -m examples.shop`: sends orders and reconciles the books, or sends orders now and then until stopped."""

import argparse
import itertools
import logging
import os
import random
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from mqbroker_client import Admin, Broker, BrokerError, Producer, Retry
from mqbroker_client.core.ids import uuid7

from examples.shop.coupons import CouponBook
from examples.shop.orders import OrderBook
from examples.shop.processes import OrderProcesses, Service, ShopFailed
from examples.shop.reconciliation import decider, holds, reconcile

POLL_SECONDS = 0.5
ORDER_PROCESSES = 4
START_RETRY = Retry(tries=100, seconds=60.0)


@dataclass(frozen=True)
class Shop:
    producer: Producer
    orders: OrderProcesses
    coupons: Service
    order_book: OrderBook
    coupon_book: CouponBook


def main() -> int:
    options = _options()
    logging.basicConfig(format="shop: %(message)s", level=logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        with Broker(options.broker, options.api_key, retry=START_RETRY) as broker, _open(broker, options) as shop:
            return _trade(shop, stop) if options.forever else _run(shop, options, stop)
    except (ShopFailed, BrokerError) as error:
        print(f"shop: {error}", file=sys.stderr)
        return 1


@contextmanager
def _open(broker: Broker, options: argparse.Namespace) -> Iterator[Shop]:
    topic, group, consumers = (f"demo-{name}{options.run}" for name in ("orders", "shop", "coupons"))
    Admin(broker).create_topic(topic)
    Admin(broker).create_producer_group(group)
    Admin(broker).create_consumer_group(consumers)
    with ExitStack() as ending:
        folder = options.data_dir or Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="shop-")))
        folder.mkdir(parents=True, exist_ok=True)
        order_book, coupon_book = OrderBook(folder / "orders.sqlite3"), CouponBook(folder / "coupons.sqlite3")
        order_book.make()
        coupon_book.make()
        key, places = options.api_key, (options.broker, topic)
        coupons = Service("coupons", key, *places, consumers, str(coupon_book.path))
        ending.enter_context(closing(coupons))
        words = (*places, group, str(order_book.path))
        orders = OrderProcesses(key, words, count=1 if options.forever else ORDER_PROCESSES)
        ending.enter_context(closing(orders))
        yield Shop(Producer(broker, group), orders, coupons, order_book, coupon_book)


def _run(shop: Shop, options: argparse.Namespace, stop: threading.Event) -> int:
    """All orders, then the reconciliation; 0 only when everything was decided and the books agree."""
    began = time.monotonic()
    order_ids = [uuid7() for _ in range(options.orders)]
    print(f"{options.orders} orders go to the topic demo-orders{options.run}", flush=True)
    answers = shop.orders.order_all(enumerate(order_ids), stop)
    print("customers:", ", ".join(f"{count} {word}" for word, count in answers.most_common()), flush=True)
    decided = _settle(shop, order_ids, began + options.seconds, stop)
    if stop.is_set():
        print("shop: stopped before the end, so there is nothing to reconcile", file=sys.stderr)
        return 1
    print(f"decided and delivered after {time.monotonic() - began:.1f} s", flush=True)
    by_checks = list(decided.values()).count("check")
    figures = reconcile(shop.order_book.paid(), shop.coupon_book.deliveries(), by_checks)
    print("\n".join(f"{name:<22}{figure:>7}" for name, figure in figures.items()), flush=True)
    print(f"{'undecided':<22}{options.orders - len(decided):>7}", flush=True)
    return 0 if holds(figures) and len(decided) == options.orders else 1


def _settle(shop: Shop, order_ids: Sequence[UUID], give_up_at: float, stop: threading.Event) -> dict[UUID, str]:
    """The outcome of each order, when all are decided and paid orders have coupons, or at `give_up_at`."""
    decided: dict[UUID, str] = {}
    while True:
        found = {one: decider(shop.producer, one) for one in order_ids if one not in decided}
        decided |= {order_id: by for order_id, by in found.items() if by is not None}
        has_all = len(decided) == len(order_ids) and not shop.order_book.paid() - shop.coupon_book.deliveries().keys()
        if has_all or time.monotonic() > give_up_at or stop.wait(POLL_SECONDS):
            break
        shop.coupons.require()
    stop.wait(2 * POLL_SECONDS)  # duplicates and wrong messages would have arrived by this time
    return decided


def _trade(shop: Shop, stop: threading.Event) -> int:
    """An order now and then, until `stop` is set or the parent process has ended."""
    starter = os.getppid()
    print("shop: an order now and then goes to the topic demo-orders", flush=True)
    for number in itertools.count():
        if stop.wait(random.uniform(2.0, 6.0)) or os.getppid() != starter:
            return 0
        shop.coupons.require()
        shop.orders.order(uuid7(), number)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.shop", description=__doc__)
    parser.add_argument("--broker", default="http://127.0.0.1:8000", help="the broker's address (%(default)s)")
    parser.add_argument("--api-key", default=os.environ.get("SHOP_API_KEY"), help="or SHOP_API_KEY; needs all scopes")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--orders", type=int, default=100, help="how many, before the reconciliation (%(default)s)")
    length.add_argument("--forever", action="store_true", help="an order now and then, until SIGTERM or Ctrl-C")
    parser.add_argument("--seconds", type=float, default=150, help="limit of a run with --orders (%(default)s)")
    parser.add_argument("--data-dir", type=Path, help="keeps both databases (else MQBROKER_DATA_DIR/shop, or nothing)")
    parser.add_argument("--run", help="suffix of topic and groups (random; none with --forever)")
    options = parser.parse_args()
    if not options.api_key:
        parser.error("--api-key or SHOP_API_KEY is needed")
    if options.forever and "MQBROKER_DATA_DIR" in os.environ:
        # Half messages of an earlier trade are checked at the next start: its books must still be there.
        options.data_dir = options.data_dir or Path(os.environ["MQBROKER_DATA_DIR"]) / "shop"
    run = options.run or ("" if options.forever else secrets.token_hex(3))
    options.run = f"-{run}" if run else ""
    return options


sys.exit(main())
