"""The order service's records: which orders were paid, and which can never be."""

from pathlib import Path
from uuid import UUID

from examples.shop import databases

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    order_id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('paid', 'abandoned'))
);
CREATE TABLE IF NOT EXISTS payments (
    order_id TEXT PRIMARY KEY REFERENCES orders,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0)
);
CREATE TABLE IF NOT EXISTS endpoint (endpoint_id TEXT PRIMARY KEY);
"""


class CardDeclined(Exception):
    """The card pays nothing; the local transaction was rolled back and left no order."""


class OrderAbandoned(Exception):
    """A check came before the payment and was answered ROLLBACK, so the order must not be paid any more."""


class OrderBook:
    def __init__(self, path: Path) -> None:
        self._connection = databases.connect(path, SCHEMA)

    def close(self) -> None:
        self._connection.close()

    def pay(self, order_id: UUID, amount_cents: int, *, card_is_good: bool) -> None:
        """The local transaction: the order and its payment, both or neither. A second time changes nothing."""
        with databases.transaction(self._connection):
            state = self._state(order_id)
            if state == "paid":
                return
            if state == "abandoned":
                raise OrderAbandoned(f"order {order_id} was given up before it was paid; order again")
            self._connection.execute("INSERT INTO orders VALUES (?, 'paid')", (str(order_id),))
            if not card_is_good:
                raise CardDeclined(f"the card for order {order_id} was declined")
            self._connection.execute("INSERT INTO payments VALUES (?, ?)", (str(order_id), amount_cents))

    def is_paid_for_good(self, order_id: UUID) -> bool:
        """Whether the order is paid; if it isn't, it never will be.

        The check may come while `pay` still waits in another process: a mere "not found" would roll back the message
        of an order that is paid a moment later. So a missing order is inserted as abandoned, and `pay` refuses it.
        """
        with databases.transaction(self._connection):
            self._connection.execute(
                "INSERT INTO orders VALUES (?, 'abandoned') ON CONFLICT DO NOTHING", (str(order_id),)
            )
            return self._state(order_id) == "paid"

    def paid(self) -> set[str]:
        rows = self._connection.execute("SELECT order_id FROM orders WHERE state = 'paid'")
        return {order_id for (order_id,) in rows}

    def endpoints(self) -> list[str]:
        """The check endpoints that this service registered and has not deleted: those of a killed predecessor."""
        return [endpoint_id for (endpoint_id,) in self._connection.execute("SELECT endpoint_id FROM endpoint")]

    def remember_endpoint(self, endpoint_id: str) -> None:
        self._connection.execute("INSERT INTO endpoint VALUES (?)", (endpoint_id,))

    def forget_endpoint(self, endpoint_id: str) -> None:
        self._connection.execute("DELETE FROM endpoint WHERE endpoint_id = ?", (endpoint_id,))

    def _state(self, order_id: UUID) -> str | None:
        row = self._connection.execute("SELECT state FROM orders WHERE order_id = ?", (str(order_id),)).fetchone()
        return row[0] if row else None
