"""The coupon service: issues a coupon for each paid order in its own database."""

import json
import os
import sqlite3
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from mqbroker_client import Broker, Consumer, Delivery

SCHEMA = "CREATE TABLE IF NOT EXISTS coupons (order_id TEXT PRIMARY KEY, deliveries INTEGER NOT NULL DEFAULT 1)"


@dataclass(frozen=True)
class CouponBook:
    """The coupons: one for each paid order, however often its message arrives."""

    path: Path

    def make(self) -> None:
        with self._connect() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(SCHEMA)

    def issue(self, delivery: Delivery) -> None:
        """Issues a coupon. A repeated order gets no second coupon, but the delivery is counted."""
        with self._connect() as connection:
            connection.execute(
                "INSERT INTO coupons (order_id) VALUES (?) "
                "ON CONFLICT (order_id) DO UPDATE SET deliveries = deliveries + 1",
                (json.loads(delivery.body)["order_id"],),
            )

    def deliveries(self) -> dict[str, int]:
        """For each order with a coupon, the number of deliveries of its message."""
        with self._connect() as connection:
            return dict(connection.execute("SELECT order_id, deliveries FROM coupons").fetchall())

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=10)


def wait_for_end(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


def main() -> None:
    """Consumes until standard input ends, which also happens when the process that started this one ends."""
    url, topic, group, database = sys.argv[1:]
    consumer = Consumer(Broker(url, os.environ["SHOP_API_KEY"]), group)
    stop = threading.Event()
    threading.Thread(target=wait_for_end, args=(stop,), daemon=True).start()
    print("ready", flush=True)
    consumer.run(topic, CouponBook(Path(database)).issue, ordered=False, stop=stop)


if __name__ == "__main__":
    main()
