"""Runs the two services in separate processes, which end with this process, and the customers of the order service."""

import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID

STOP_SECONDS = 8.0


class ShopFailed(Exception):
    """A service has ended; the reason is on its standard error."""


class Service:
    """A process that prints "ready" when it serves, and ends when its standard input ends."""

    def __init__(self, name: str, api_key: str, *options: str) -> None:
        self.name = name
        # Passed by the environment, because any process on the machine can read arguments.
        path = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"examples.shop.{name}", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SHOP_API_KEY": api_key, "PYTHONPATH": path},
            # A Ctrl-C at the terminal then reaches only the shop, which stops its services in order.
            start_new_session=True,
        )
        if self.read() != "ready":
            raise ShopFailed(f"the service {name} did not start; see above")

    def ask(self, line: str) -> str:
        """The process's answer to a line; empty if the process died."""
        assert self.process.stdin
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self.read()

    def read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def require(self) -> None:
        if self.process.poll() is not None:
            raise ShopFailed(f"the service {self.name} ended with code {self.process.returncode}")

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class OrderProcesses:
    """The processes of the order service. A killed process loses only its current order, and is replaced."""

    def __init__(self, api_key: str, options: Sequence[str], count: int) -> None:
        self._start = partial(Service, "orders", api_key, *options)
        self._free: queue.SimpleQueue[Service] = queue.SimpleQueue()
        for _ in range(count):
            self._free.put(self._start())
        self._count = count

    def order(self, order_id: UUID, number: int) -> str:
        """The order service's answer to the customer."""
        service = self._free.get()
        answer = service.ask(f"{order_id} {number}")
        if not answer:
            service.process.wait()
            service = self._start()
        self._free.put(service)
        return answer or "without an answer"

    def order_all(self, orders: Iterable[tuple[int, UUID]], stop: threading.Event) -> Counter[str]:
        """Sends orders by number and id, one per process at a time. Returns how often each answer came."""
        with ThreadPoolExecutor(self._count) as customers:
            answers = customers.map(lambda order: "" if stop.is_set() else self.order(order[1], order[0]), orders)
            return Counter(answers)

    def close(self) -> None:
        while not self._free.empty():
            self._free.get().close()
