"""A child process with its own session and log, which is ended together with its process group."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mqbroker.embedded.processes import launch

LOG_MAX_BYTES = 10 * 1024 * 1024
POLL_SECONDS = 0.02


class Child:
    """A process that ends together with this process, also if this process is killed.

    It has its own session, so that Ctrl-C in a terminal reaches only the supervisor, which ends its children in order.
    It inherits the open `files`.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        folder: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
        stop_seconds: float = 3,
        way: str = "stay",
        files: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.command = list(command)
        self.environment = dict(environment)
        self.log = log
        self.folder = folder
        self.stop_signal = stop_signal
        self.stop_seconds = stop_seconds
        self.way = way
        self.files = tuple(files)
        self.started_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the latest run, 0 before the first start."""
        return self._process.pid if self._process else 0

    @property
    def exit_status(self) -> str:
        """In words, how the latest run of the process ended."""
        code = self._process.returncode if self._process else None
        if code is None:
            return "running"
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def start(self) -> None:
        """Starts the command, again or for the first time; its output is appended to the log."""
        self.bound_log()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                launch.command(self.way, self.stop_signal, *self.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=self.environment,
                start_new_session=True,
                pass_fds=self.files,
            )
        self.started_at = time.monotonic()

    def is_running(self) -> bool:
        """Whether the process runs. After its end the rest of its group is ended, too."""
        if self._process is None or self._process.returncode is not None:
            return False
        if hasattr(os, "waitid"):
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return True
            # Until this process has waited for the child, the child's id cannot belong to another group.
            self.send_to_group(signal.SIGKILL)
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process, if it runs."""
        if self.is_running():
            os.kill(self.pid, number)

    def send_to_group(self, number: signal.Signals) -> None:
        """Sends a signal to the process and its descendants in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def ask_to_stop(self) -> None:
        """Sends the stop signal; the process has `stop_seconds` to end."""
        self.send(self.stop_signal)

    def wait(self, seconds: float) -> bool:
        """Waits for the end. Returns False if the process still runs after `seconds`."""
        return wait_until(lambda: not self.is_running(), seconds)

    def kill(self) -> None:
        """Kills the process and its group with SIGKILL, and waits for their end."""
        if self.is_running():
            self.send_to_group(signal.SIGKILL)
            self.wait(10)

    def stop(self) -> None:
        """Asks to stop, waits `stop_seconds`, then kills."""
        self.ask_to_stop()
        if not self.wait(self.stop_seconds):
            self.kill()

    def bound_log(self) -> None:
        """Copies the last LOG_MAX_BYTES of a longer log to another file and empties the log, which the process holds
        open. Earlier lines are lost. The copy has a fixed length: a copy to the end of the file might never end while
        the process writes.
        """
        with contextlib.suppress(FileNotFoundError):
            size = self.log.stat().st_size
            if size > LOG_MAX_BYTES:
                with contextlib.suppress(OSError):  # a full disk is one more reason to continue
                    self.log.with_suffix(".log.1").write_bytes(self._bytes_of_log(size - LOG_MAX_BYTES, LOG_MAX_BYTES))
                os.truncate(self.log, 0)

    def _bytes_of_log(self, start: int, count: int) -> bytes:
        with self.log.open("rb") as log:
            log.seek(start)
            return log.read(count)

    def last_lines(self, count: int = 20) -> str:
        """The end of the log, for a start that failed."""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 16_384))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])


def wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Polls until the condition holds. Returns False if it does not hold within `seconds`."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
