"""The coupon service's records: one coupon for each paid order, however often its message comes."""

from collections.abc import Iterable
from pathlib import Path

from examples.shop import databases

SCHEMA = """
CREATE TABLE IF NOT EXISTS coupons (
    order_id TEXT PRIMARY KEY,
    deliveries INTEGER NOT NULL DEFAULT 1
);
"""


class CouponBook:
    def __init__(self, path: Path) -> None:
        self._connection = databases.connect(path, SCHEMA)

    def close(self) -> None:
        self._connection.close()

    def issue(self, order_ids: Iterable[str]) -> None:
        """A coupon for each order. An order that comes again gets no second coupon, but is counted."""
        with databases.transaction(self._connection):
            self._connection.executemany(
                "INSERT INTO coupons (order_id) VALUES (?) "
                "ON CONFLICT (order_id) DO UPDATE SET deliveries = deliveries + 1",
                [(order_id,) for order_id in order_ids],
            )

    def deliveries(self) -> dict[str, int]:
        """For each order that got its coupon, how often its message was delivered."""
        return dict(self._connection.execute("SELECT order_id, deliveries FROM coupons").fetchall())
