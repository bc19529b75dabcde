"""The coupon service: receives paid orders, issues a coupon for each in its own database, and acks."""

import argparse
import json
import logging
import os
import select
import sys
from dataclasses import dataclass
from pathlib import Path

from mqbroker_client import Broker, BrokerError, Consumer

from examples.shop.coupon_book import CouponBook

log = logging.getLogger("shop.coupons")

# Short enough to stop soon, long enough to cost nothing.
WAIT_SECONDS = 2
PAUSE_AFTER_FAILURE_SECONDS = 1.0


@dataclass(frozen=True)
class CouponService:
    consumer: Consumer
    book: CouponBook
    topic: str

    def work(self, wait_seconds: float) -> int:
        """Receive, issue, ack; the number of messages.

        A crash before the ack has them received again: the book issues no second coupon.
        """
        deliveries = self.consumer.receive(self.topic, wait_seconds=wait_seconds)
        if deliveries:
            self.book.issue(order_id for delivery in deliveries if (order_id := _order_of(delivery.body)) is not None)
            self.consumer.ack(deliveries)
        return len(deliveries)


def _order_of(body: bytes) -> str | None:
    """The id of the message's order; None for a message that is not an order, which gets no coupon."""
    try:
        order = json.loads(body)
    except ValueError:
        order = None
    if isinstance(order, dict) and isinstance(order.get("order_id"), str):
        return str(order["order_id"])
    log.warning("no order: %r", body[:80])
    return None


def run(service: CouponService, lifeline: int) -> None:
    """Work until `lifeline`, a file descriptor, is at its end, and then until nothing is left."""
    failing = False
    while True:
        stopping = _is_at_its_end(lifeline, 0)
        try:
            received = service.work(0 if stopping else WAIT_SECONDS)
            failing = False
        except BrokerError as error:
            if not failing:
                log.warning("no orders are received until the broker is back: %s", error)
            failing, received = True, 0
            _is_at_its_end(lifeline, PAUSE_AFTER_FAILURE_SECONDS)
        if stopping and not received:
            return


def _is_at_its_end(lifeline: int, seconds: float) -> bool:
    return bool(select.select([lifeline], [], [], seconds)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", required=True)
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    options = parser.parse_args()
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    broker = Broker(options.broker, os.environ["SHOP_API_KEY"])
    service = CouponService(Consumer(broker, options.group), CouponBook(options.database), options.topic)
    print("ready", flush=True)
    run(service, sys.stdin.fileno())


if __name__ == "__main__":
    main()
