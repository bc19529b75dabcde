"""The whole broker on one data folder: servers, web, worker, beat, and the demonstration beside them."""

import http.client
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from mqbroker.embedded import commands, environment, launch
from mqbroker.embedded.child import Child
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.errors import PortTaken, ServerFailed
from mqbroker.embedded.folder import DataFolder, why_taken
from mqbroker.embedded.interrupts import Interrupts
from mqbroker.embedded.servers import Servers
from mqbroker.embedded.supervisor import Supervisor

READY_SECONDS = 60
DEATHS_AT_START = 3
# Callers go first, then who serves and works for them, then what those need.
CALLERS, WEB, WORKERS, VALKEY, POSTGRES = range(5)
APPS = ("mqbroker", "console", "transactions", "delivery", "analytics", "scheduling", "webhooks", "store")


@dataclass(frozen=True)
class Access:
    """How to get in. What an earlier start made or was given is None: it was shown or known then."""

    api_key: str | None
    console_user: str | None
    console_password: str | None


class Broker:
    """One broker. Start it, run it, stop it, within a claimed data folder and entered interrupts."""

    def __init__(
        self, folder: DataFolder, port: int, interrupts: Interrupts, say: Callable[[str], None], processes: int = 1
    ) -> None:
        self.folder = folder
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.interrupts = interrupts
        self.say = say
        self.processes = processes
        self.supervisor = Supervisor(folder, interrupts, say)
        self._servers: Servers | None = None

    def start(self, api_key: str | None = None, reload: bool = False) -> Access:
        """Returns when requests are answered.

        Raises CannotStart; `stop` is to be called then, too.
        """
        if reason := why_taken(self.port):
            raise PortTaken(self.port, reason)
        self.say("Starting.")
        self._servers = Servers(self.folder, os.environ)
        self._servers.start()
        for child in self._servers.children():
            self.supervisor.watch(child, POSTGRES if child.name == "PostgreSQL" else VALKEY)
        access = self._prepare(api_key)
        web = self._child("web", commands.web(self.port, self.processes, reload))
        worker, beat = commands.worker(), commands.beat(self.folder.path / "beat-schedule")
        if reload:
            worker, beat = (commands.watched(command, [ROOT / app for app in APPS]) for command in (worker, beat))
        self.supervisor.watch(web, WEB)
        self.supervisor.watch(self._child("worker", worker), WORKERS)
        self.supervisor.watch(self._child("beat", beat), WORKERS)
        self.interrupts.hold()
        self._wait_until_ready(web)
        self.folder.keep_port("web", self.port)
        return access

    def demonstrate(self) -> None:
        """Lets the order and the coupon service of the examples run beside the broker for ever."""
        key = self.folder.kept_secret("api-key")
        if key is None:
            self.say("The demonstration needs an API key and this folder keeps none: give one with --api-key.")
            return
        self.supervisor.watch(self._child("demo", commands.demonstration(self.url, key, "--forever")), CALLERS)

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Watches over the processes until it is so, or until a signal."""
        self.supervisor.run(until)

    def stop(self) -> None:
        """Ends everything in order, in about ten seconds at most."""
        self.interrupts.hold()
        self.supervisor.stop()
        if self._servers:
            self._servers.stop()

    def environment(self) -> dict[str, str]:
        """For the broker's processes and for commands beside them."""
        assert self._servers, "the broker was not started"
        return environment.embedded(self.folder, self._servers) | {"MQBROKER_PORT": str(self.port)}

    def _child(self, name: str, command: list[str]) -> Child:
        return Child(name, command, self.environment(), self.folder.log(name), ROOT)

    def _prepare(self, api_key: str | None) -> Access:
        """Migrates, makes what is missing of key and console user, and keeps the key for the demonstration."""
        words = commands.manage("prepare", *(["--api-key", api_key] if api_key else []))
        log = self.folder.log("prepare")
        with log.open("w") as opened:
            done = subprocess.run(
                launch.command("stay", 9, *words),
                env=self.environment(),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=opened,
                text=True,
            )
        if done.returncode != 0:
            reason = (log.read_text().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise ServerFailed("The database's preparation", reason, log)
        access = Access(**json.loads(done.stdout.splitlines()[-1]))
        if access.api_key:
            self.folder.keep_secret("api-key", access.api_key)
        return access

    def _wait_until_ready(self, web: Child) -> None:
        def settled() -> bool:
            return self.is_ready() or self.supervisor.deaths(web) >= DEATHS_AT_START

        self.supervisor.run(settled, pause_seconds=0.05, at_most_seconds=READY_SECONDS)
        if not self.interrupts.count and not self.is_ready():
            self.say(f"The last lines of the web process:\n{web.last_lines()}")
            raise ServerFailed("The web process", f"/readyz does not answer 200, {web.exit_status}", web.log)

    def is_ready(self) -> bool:
        """Whether /readyz answers 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
