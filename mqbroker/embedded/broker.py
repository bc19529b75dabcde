"""The whole broker on one data folder: servers, web, worker, beat, and the demonstration."""

import os
import socket
from collections.abc import Callable

from mqbroker import logs
from mqbroker.embedded import commands, environment, preparation, readiness
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.errors import CannotStart, CellsNotPrivate, PortTaken, ServerFailed
from mqbroker.embedded.folder import DataFolder, why_taken
from mqbroker.embedded.interrupts import Interrupts
from mqbroker.embedded.preparation import Access, Joined, Memory
from mqbroker.embedded.processes.child import Child
from mqbroker.embedded.readiness import Readiness
from mqbroker.embedded.servers.backing import Servers
from mqbroker.embedded.supervisor import Supervisor
from mqbroker.environment import extras
from mqbroker.web import listener

# How many seconds the processes of a killed broker have to end.
PATIENCE_SECONDS = 0.5
# The order of the stop: callers, then the broker's processes, then the servers that these processes need.
CALLERS, WEB, WORKERS, VALKEY, POSTGRES = range(5)


class Broker:
    """A broker of `./mq up`: `start`, `run`, `stop`, within a claimed data folder and entered interrupts."""

    def __init__(
        self,
        folder: DataFolder,
        port: int,
        interrupts: Interrupts,
        say: Callable[[str], None],
        processes: str = "1",
        cells: int | None = None,
        rocketmq_port: int | None = None,
    ) -> None:
        self.folder = folder
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.interrupts = interrupts
        self.say = say
        self.processes = processes
        self.cells = cells
        self.rocketmq_port = rocketmq_port
        self.supervisor = Supervisor(folder, interrupts, say)
        self._servers: Servers | None = None
        # The listening socket is open from start to stop, so that no other program takes the port while the web process
        # restarts.
        self._listening: socket.socket | None = None

    def start(self, api_key: str | None = None, reload: bool = False) -> Access:
        """Starts the broker; returns when /readyz answers 200.

        Waits as long as the web process lives and PostgreSQL answers.

        1. Listen on the port, and on the port for RocketMQ's clients; a port that is taken fails at once.
        2. Start the private servers.
        3. Prepare the database and start the web process; one after the other only if the code has changed.
        4. Start worker and beat, and write the port to the data folder for other commands.

        Raises CannotStart; the caller must call `stop` also in this case.
        """
        self._listening = self._listen()
        if self.rocketmq_port is not None and (reason := why_taken(self.rocketmq_port)):
            raise PortTaken(
                f"Port {self.rocketmq_port} of 127.0.0.1 cannot be used ({reason}): stop what uses it, or give another "
                "--rocketmq-port."
            )
        if self.rocketmq_port is not None and (problem := extras.missing("rocketmq")):
            raise CannotStart(problem)
        self.say("Starting.")
        self._servers = Servers(self.folder, os.environ)
        if self.cells and not self._servers.postgres:
            raise CellsNotPrivate
        self._servers.start(self.say)
        for child in self._servers.children():
            self.supervisor.watch(child, POSTGRES if child.name == "PostgreSQL" else VALKEY)
        access = self._prepare_and_serve(api_key, reload)
        # Worker and beat start last, because on few cores they would delay the first answer.
        self._work(reload)
        self.folder.keep_port("web", self.port)
        return access

    def _listen(self) -> socket.socket:
        try:
            return listener.listen("127.0.0.1", self.port, PATIENCE_SECONDS)
        except listener.PortInUse as problem:
            raise PortTaken(str(problem)) from problem

    def _prepare_and_serve(self, api_key: str | None, reload: bool) -> Access:
        web = self._web(reload)
        access = Access()
        memory, joined = self._memory(), self._joined()
        is_prepared = memory is not None and memory.is_up_to_date()
        if joined and not joined.is_complete(self.cells):
            is_prepared = False
        if not is_prepared:
            access = self._prepare(api_key)
        self.supervisor.watch(web, WEB)
        if is_prepared and api_key:
            access = self._prepare(api_key)
        self.interrupts.hold()
        self._wait_until_ready(web)
        return access

    def _work(self, reload: bool) -> None:
        processes = {"worker": commands.worker(), "beat": commands.beat(self.folder.path / "beat-schedule")}
        if self.rocketmq_port is not None:
            processes["rocketmq"] = commands.rocketmq(self.rocketmq_port)
        for name, command in processes.items():
            if reload:
                command = commands.watched(command, [ROOT / app for app in logs.APPS])
            self.supervisor.watch(self._child(name, command), WEB if name == "rocketmq" else WORKERS)

    def demonstrate(self) -> None:
        """Runs the order and the coupon service of the examples beside the broker until `stop`."""
        key = self.folder.kept_secret("api-key")
        if key is None:
            self.say("The demonstration needs an API key and this folder keeps none: give one with --api-key.")
            return
        shop = self._child("demo", commands.demonstration(self.url, "--forever"), SHOP_API_KEY=key)
        self.supervisor.watch(shop, CALLERS)

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Supervises the processes until the condition holds, or until a signal."""
        self.supervisor.run(until)

    def stop(self) -> None:
        """Ends all processes in order, within about ten seconds."""
        self.interrupts.hold()
        if self._listening:
            # New connections are refused at once when the web process, which has the socket too, has ended.
            self._listening.close()
        self.supervisor.stop()
        if self._servers:
            self._servers.stop()

    def environment(self) -> dict[str, str]:
        """The environment of the broker's processes and of commands beside them."""
        assert self._servers, "the broker was not started"
        return environment.embedded(self.folder, self._servers) | {"MQBROKER_PORT": str(self.port)}

    def _child(self, name: str, command: list[str], **variables: str) -> Child:
        return Child(name, command, self.environment() | variables, self.folder.log(name), ROOT)

    def _web(self, reload: bool) -> Child:
        """The web processes, which serve on this listening socket."""
        assert self._listening, "the broker was not started"
        inherited = self._listening.fileno()
        command = commands.web(self.port, self.processes, reload, inherited)
        return Child("web", command, self.environment(), self.folder.log("web"), ROOT, files=[inherited])

    def _prepare(self, api_key: str | None) -> Access:
        """Prepares the database, and stores the API key in the data folder, for the demonstration and the user."""
        joined = self._joined()
        cells = joined.count(self.cells) if joined else 1
        access = preparation.run(self.environment(), self.folder.log("prepare"), api_key, cells, self.say)
        if joined:
            joined.keep(cells)
        if key := api_key or access.api_key:
            self.folder.keep_secret("api-key", key)
        if memory := self._memory():
            memory.keep()
        return access

    def _joined(self) -> Joined | None:
        """The file that says how many cells this folder's server has; None for an external database."""
        private = self._servers and self._servers.postgres
        return Joined(private.data, self.folder.port("postgres")) if private else None

    def _memory(self) -> Memory | None:
        """The note about the code version for which this folder's database was prepared; None for an external database,
        which others may change.
        """
        private = self._servers and self._servers.postgres
        return Memory(private.data) if private else None

    def _wait_until_ready(self, web: Child) -> None:
        database_url = self.environment()["DATABASE_URL"]
        waiting = Readiness(
            self.port, lambda: self.supervisor.deaths(web), lambda: readiness.answers(database_url), self.say
        )
        self.supervisor.run(waiting.is_settled, pause_seconds=0.05)
        if waiting.failure:
            self.say(f"The last lines of the web process:\n{web.last_lines()}")
            if memory := self._memory():
                memory.forget()  # a failed preparation: the next start prepares the database again
            raise ServerFailed("The web process", f"{waiting.failure}, {web.exit_status}", web.log)
