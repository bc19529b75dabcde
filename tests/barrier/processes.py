"""A producer's process, seen from a test: given orders, waited for, stopped and killed."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from mqbroker_client.core.ids import uuid7

from mqbroker.embedded.commands import ROOT
from tests.barrier.places import Place
from tests.broker import forks
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker


@dataclass
class Process:
    """Use `order`, then `until` for each of its stops, and `go_on` at each of them."""

    lines: TextIO
    pid: int

    def order(self, **fields: Any) -> str:
        """Begins an order; its id."""
        order_id = str(uuid7())
        self.tell(json.dumps({"order_id": order_id, **fields}))
        return order_id

    def until(self, at: str) -> dict[str, Any]:
        """What the process says at its next stop, which must be this one."""
        found = self._next()
        assert found["at"] == at, found
        return found

    def until_half(self) -> UUID:
        """Stops between half and COMMIT, with the row written; the transaction's id."""
        found = self._next()
        if found["at"] == "begun":
            self.go_on()
            found = self._next()
        assert found["at"] == "half", found
        return UUID(found["transaction_id"])

    def go_on(self, word: str = "") -> None:
        self.tell(word)

    def tell(self, line: str) -> None:
        self.lines.write(line + "\n")
        self.lines.flush()

    def finish(self) -> dict[str, Any]:
        """Goes on to the end of the order; what it ended with."""
        while (found := self._next())["at"] not in ("done", "failed"):
            self.go_on()
        return found

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Returns when the process has ended, as its end of the connection shows."""
        self.send(signal.SIGKILL)
        assert self.lines.read() == ""

    def _next(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lines.readline())
        return found


@dataclass(frozen=True)
class Program:
    """A program with all of its modules, of which `process` forks."""

    socket_path: Path

    @contextmanager
    def process(self) -> Iterator[Process]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.socket_path))
            process = Process(connection.makefile("rw"), 0)
            process.pid = process.until("ready")["pid"]
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    process.send(signal.SIGKILL)


@contextmanager
def program(binding: str, place: Place, broker: RunningBroker, folder: Path) -> Iterator[Program]:
    path = folder / "orders"
    words = [sys.executable, "-m", "tests.barrier.local", binding, place.words(), broker.url, str(path)]
    child = forks.ForkedChild("orders", words, environment(), folder / "orders.log", ROOT)
    child.start()
    try:
        eventually(lambda: path.exists() or not child.is_running())
        assert path.exists(), child.last_lines()
        yield Program(path)
    finally:
        child.kill()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'client'}", "API_KEY": API_KEY}
