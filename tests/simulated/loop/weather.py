"""The weather of a run: how long messages to the simulated server take, what they meet, and when the server hangs."""

import os
from collections.abc import Callable, Sequence
from contextvars import Context

from tests.simulated.loop.postgres import Database
from tests.simulated.loop.virtual import VirtualLoop

# What the product polls for a hang-up is a file descriptor of the machine: one that says nothing, and one that has
# something to read for ever.
QUIET = [os.pipe()[0] for _ in range(64)]
NOISY, _noise = os.pipe()
os.write(_noise, b"x")

# The longest is what a busy server takes.
LATENCIES = (0.0005, 0.003, 0.04, 0.25)
# A server that hangs goes on after one of these.
HANG_SECONDS = (0.5, 3.0, 6.0, 15.0)

# What the server answers in place of what was asked for.
ERRORS = {
    "deadlock": "40P01",
    "lock": "55P03",
    "crowded": "53300",
    "full": "53100",
    "read-only": "25006",
}
FAULTS = (*ERRORS, "ended before", "ended behind", "cut before", "cut behind", "silence", "hang", "roll", "half sent")


class Weather:
    """The faults that a run may meet: about half of all, so that runs differ in kind."""

    def __init__(self, loop: VirtualLoop, faults: Sequence[str] = FAULTS) -> None:
        self._loop = loop
        self.faults = [fault for fault in faults if loop.chance.one_in(2)]
        #: Once in a run, and of a server that is quick before: waits that follow each other add up to more than a
        #: caller is promised.
        self.may_hang = loop.chance.one_in(2)
        self._latencies = LATENCIES[:-1] if self.may_hang else LATENCIES
        self.is_over = False

    def fault(self) -> str:
        """What the next message meets; empty as a rule."""
        if self.is_over or not self.faults or not self._loop.chance.one_in(6):
            return ""
        fault = self.faults[self._loop.chance.choose(len(self.faults))]
        if fault in ("silence", "hang"):
            if not self.may_hang:
                return ""
            self.may_hang = False
        self._loop.note("meets", fault)
        return fault

    def latency(self, *, is_step: bool = False) -> float:
        """How long the next message takes; the longest is too long for one of many steps."""
        latencies = LATENCIES[:-1] if is_step else self._latencies
        return latencies[self._loop.chance.choose(len(latencies))]


class Network:
    """The way to one server, and the server's own pace: while it hangs nothing happens there."""

    def __init__(self, loop: VirtualLoop, database: Database, weather: Weather) -> None:
        self.loop = loop
        self.database = database
        self.weather = weather
        self._hangs_until = 0.0
        self._sockets = 0

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Has the server do something, behind its hang if there is one."""

        def run() -> None:
            left = self._hangs_until - self.loop.time()
            if left > 0:
                self.later(left, call)
            else:
                call()

        self.loop.call_later(seconds, run, context=Context())

    def hang(self) -> None:
        """The server does nothing for a while."""
        seconds = HANG_SECONDS[self.loop.chance.choose(len(HANG_SECONDS))]
        self.loop.note("the server hangs for", seconds)
        self._hangs_until = self.loop.time() + seconds

    def socket(self) -> int:
        """The file descriptor of the next connection."""
        self._sockets += 1
        return QUIET[self._sockets % len(QUIET)]
