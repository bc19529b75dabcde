"""Runs a command in the user's terminal and returns its exit code."""

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from mqbroker.embedded.commands import ROOT

WAIT_SECONDS = 1.0


class Signals:
    """Signals during a command: the terminal sends Ctrl-C to the command, and this process forwards SIGTERM and SIGHUP.

    Handlers are set before the command starts, because a signal may come before this process runs again.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        earlier = {
            signal.SIGINT: signal.signal(signal.SIGINT, lambda number, frame: None),
            signal.SIGTERM: signal.signal(signal.SIGTERM, self._hand_on),
            signal.SIGHUP: signal.signal(signal.SIGHUP, self._hand_on),
        }
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)

    def hand_on_to(self, process: subprocess.Popen[bytes]) -> None:
        """Forwards signals to this process from now on, also signals that came before."""
        self._process = process
        while self._waiting:
            process.send_signal(self._waiting.pop())

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        if self._process is None:
            self._waiting.append(number)
        else:
            self._process.send_signal(number)


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Waits for the command. Returns its exit code as a shell would."""
    signals = Signals()
    with signals.taken(), subprocess.Popen(command, env=environment, cwd=ROOT) as process:
        signals.hand_on_to(process)
        code = _exit_status(process)
    return code if code >= 0 else 128 - code


def _exit_status(process: subprocess.Popen[bytes]) -> int:
    """The exit status. Waits in short steps, because a signal just before a wait is handled only after the wait."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(WAIT_SECONDS)
