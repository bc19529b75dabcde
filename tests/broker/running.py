"""A running broker: web, worker and beat as real processes on a database of its own."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from mqbroker_client import Broker

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from tests.broker import cells, forks
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.wire import Wire

API_KEY = "mq_of_the_tests"
# Everything that takes its time in production, short. A retry waits for level 3 at first.
QUICK = {
    "MQBROKER_AUTO_CREATE_TOPICS": "true",
    "MQBROKER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
    "MQBROKER_TRANSACTION_TIMEOUT_SECONDS": "1",
    "MQBROKER_TRANSACTION_CHECK_INTERVAL_SECONDS": "1",
    "MQBROKER_TRANSACTION_CHECK_MAX": "3",
    "MQBROKER_MIN_INVISIBLE_SECONDS": "1",
    "MQBROKER_DELAY_LEVELS": "1s 2s 1s 1s 3s",
}


# What each broker behind a pooler is set to, by the URL of that.
POOLED: dict[str, Mapping[str, str]] = {}


class RunningBroker:
    """The processes of one broker. Within `with` they run; afterwards exactly these have ended.

    `webs` are separate web processes: they share nothing but the database. Each may have several `processes` on its
    port, as the option says. `ports` are theirs where they are given. `checkout` may be that of another version.
    """

    def __init__(
        self,
        folder: Path,
        database_url: str,
        redis_url: str,
        settings: Mapping[str, str] = QUICK,
        *,
        webs: int = 1,
        ports: Sequence[int] = (),
        processes: int | str = 1,
        tasks: bool = True,
        checkout: Path = ROOT,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.checkout = checkout
        self.database_url = database_url
        theirs = {name: value for name, value in os.environ.items() if not name.startswith("MQBROKER_")}
        places = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        pooled = POOLED.get(database_url, {})
        self.environment = theirs | forks.path_of(checkout) | dict(settings) | places | dict(pooled)
        ports = list(ports) or [free_port() for _ in range(webs)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.webs = [self._child(f"web-{port}", commands.web(port, processes, False)) for port in ports]
        self.worker = self._child("worker", commands.worker())
        self.beat = self._child("beat", commands.beat(folder / "beat-schedule"))
        self.children = [*self.webs, *([self.worker, self.beat] if tasks else [])]
        for child in self.children:
            child.is_one_of_several = len(self.children) > 1

    @property
    def url(self) -> str:
        """Of the first web process."""
        return self.urls[0]

    def client(self, web: int = 0) -> Broker:
        """The SDK's way to one of the web processes. Bodies go as they are: large ones are to be large."""
        return Broker(self.urls[web], API_KEY, timeout_seconds=30, compression=None)

    def wire(self, web: int = 0) -> Wire:
        """Plain HTTP to one of the web processes."""
        return Wire(self.urls[web], API_KEY)

    def prepare(self) -> None:
        """Makes the tables and the API key."""
        words = commands.manage("prepare", "--api-key", API_KEY)
        done = forks.run(words, self.environment, self.checkout)
        assert done.returncode == 0, done.stderr[-1000:]

    def database_of(self, topic: str) -> str:
        """The URL of the database where a topic lies, or will lie: that of its cell."""
        return cells.database_of(self.database_url, topic)

    @property
    def direct_url(self) -> str:
        """The URL of the database itself, for what a session keeps: a pooler may stand before it."""
        return POOLED.get(self.database_url, {}).get("DIRECT_DATABASE_URL", self.database_url)

    @property
    def databases(self) -> list[str]:
        """The URLs of the databases of all cells, the control's first."""
        return cells.databases_of(self.database_url)

    def wait_until_ready(self) -> None:
        """Returns when every web process answers."""
        for web in range(len(self.webs)):
            self.wait_until_answers(web)

    def wait_until_answers(self, web: int) -> None:
        """Returns when one of the web processes answers."""
        eventually(partial(self._answers, web), within_seconds=60)

    def log(self) -> str:
        """What the processes said; nothing when all went well."""
        return "".join(child.log.read_text(errors="replace") for child in self.children if child.log.exists())

    def __enter__(self) -> Self:
        try:
            for child in self.children:
                child.start()
            self.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes, all at once."""
        for child in self.children:
            child.ask_to_stop()
        for child in self.children:
            child.stop()

    def _child(self, name: str, command: list[str]) -> forks.ForkedChild:
        return forks.ForkedChild(name, command, self.environment, self.folder / f"{name}.log", self.checkout)

    def _answers(self, web: int) -> bool:
        assert self.webs[web].is_running(), self.webs[web].last_lines()
        try:
            return self.wire(web).get("/v1/transactions/none").status == 404
        except OSError:
            return False
