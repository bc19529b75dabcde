"""A broker to measure: real processes on a new database of the servers that `./mq bench` has started."""

import contextlib
import http.client
import os
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from mqbroker.embedded.folder import free_port
from mqbroker.embedded.processes import launch
from tools.bench.checkout import Checkout
from tools.bench.machine import cpu_of_group

KEY = "mq_bench"
# The start may take this long, because loaded machines are slow. If the process ends, the wait ends at once.
START_SECONDS = 120
STOP_SECONDS = 15


@dataclass
class Broker:
    """The measured web processes, worker and beat, and their database."""

    port: int
    database_url: str
    environment: dict[str, str]
    folder: Path
    checkout: Checkout = field(default_factory=Checkout)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: list[str]) -> None:
        """Starts a process in a new process group; its output goes to the folder.

        It ends when this process ends, also by a kill.
        """
        words = launch.command("stay", signal.SIGTERM, *command)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                words, env=self.environment, cwd=self.checkout.root, stdout=log, stderr=log, start_new_session=True
            )

    def stop(self, name: str) -> None:
        """Stops one process and its children."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def wait_until_ready(self, name: str, port: int) -> None:
        """Returns when this web process is ready; otherwise raises RuntimeError with the end of its log."""
        deadline = time.monotonic() + START_SECONDS
        # If the process has ended, another broker may answer on its port.
        while time.monotonic() < deadline and self.processes[name].poll() is None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"the broker is not ready: {(self.folder / f'{name}.log').read_text()[-2000:]}")

    def cpu_seconds(self) -> dict[str, float]:
        """The CPU seconds that each process and its children have used so far."""
        return {name: cpu_of_group(process.pid) for name, process in self.processes.items()}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def running(
    web_processes: str = "1", worker: bool = True, checkout: Checkout | None = None, **settings: object
) -> Iterator[Broker]:
    """Starts a broker and yields it when it is ready; afterwards stops it and drops its database."""
    checkout = checkout or Checkout()
    with database() as database_url, tempfile.TemporaryDirectory(prefix="mqbench-") as folder:
        environment = os.environ | {
            "DATABASE_URL": database_url,
            "MQBROKER_AUTO_CREATE_TOPICS": "true",
            "MQBROKER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "MQBROKER_SECRET_KEY": "bench",
            **{f"MQBROKER_{name}": str(value) for name, value in settings.items()},
        }
        broker = Broker(free_port(), database_url, environment, Path(folder), checkout)
        commands = checkout.commands(KEY, broker.port, web_processes, Path(folder) / "beat-schedule")
        prepared = subprocess.DEVNULL
        subprocess.run(commands["prepare"], env=environment, cwd=checkout.root, check=True, stdout=prepared)
        try:
            for name in ("web", "worker", "beat") if worker else ("web",):
                broker.start(name, commands[name])
            broker.wait_until_ready("web", broker.port)
            yield broker
        finally:
            for name in list(broker.processes):
                broker.stop(name)


@contextlib.contextmanager
def database() -> Iterator[str]:
    """Creates a database on the server that DATABASE_URL names, and drops it after the block."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    name = f"bench_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield urlunsplit(parts._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}"'.encode())
