"""Customers: they send orders over HTTP, and keep only the answers."""

import json
import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from uuid import UUID

import urllib3

TRIES = 5
PAUSE_SECONDS = 0.5
TIMEOUT_SECONDS = 30.0
AMOUNT_CENTS = 4_200

PAID = "paid"
DECLINED = "declined"
NO_ANSWER = "without an answer"
NOT_TAKEN = "not taken"
_ANSWERS = {201: PAID, 402: DECLINED}


@dataclass
class Customers:
    url: str
    stop: threading.Event
    _http: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(maxsize=64))

    def order_all(self, orders: Iterable[tuple[int, UUID]], concurrency: int) -> Counter[str]:
        """Send (number, order id) pairs, `concurrency` at a time; the number of each answer."""
        with ThreadPoolExecutor(concurrency) as customers:
            return Counter(customers.map(lambda order: self.order(*order), orders))

    def order(self, number: int, order_id: UUID) -> str:
        """Try again after 503, which says that nothing happened; never after a lost answer: the order may be paid."""
        for _ in range(TRIES):
            if self.stop.is_set():
                break
            try:
                status = self._post(number, order_id)
            except urllib3.exceptions.NewConnectionError:
                status = 503
            except urllib3.exceptions.HTTPError:
                return NO_ANSWER
            if status != 503:
                return _ANSWERS.get(status, NOT_TAKEN)
            self.stop.wait(PAUSE_SECONDS)
        return NOT_TAKEN

    def _post(self, number: int, order_id: UUID) -> int:
        order = {"order_id": str(order_id), "number": number, "amount_cents": AMOUNT_CENTS}
        answer = self._http.request(
            "POST",
            f"{self.url}/orders",
            body=json.dumps(order).encode(),
            headers={"Content-Type": "application/json"},
            timeout=TIMEOUT_SECONDS,
            retries=False,
        )
        return answer.status
