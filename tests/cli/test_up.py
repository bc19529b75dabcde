"""`./mq up` runs the whole broker, survives kill -9 of anything, and leaves nothing behind."""

import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import psutil
import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.processes import identity
from tests.broker import databases, processor_time
from tests.broker.polling import at_this_load
from tests.broker.ports import free_port
from tests.broker.wire import Wire
from tests.cli.conftest import Eventually, Run, running

KEY = "mq_key_of_the_tests_0123456789"
# A hundredth of the gap that is looked for; without it, the callers keep the next process from starting.
PACE_SECONDS = 0.01


class Up:
    """A broker as its user starts it."""

    def __init__(self, run_python: Run, folder: Path) -> None:
        self.run_python = run_python
        self.folder = DataFolder(folder)
        self.port = free_port()
        self.process: subprocess.Popen[str] | None = None

    def start(self, *options: str, database_url: str = "", **variables: str) -> list[str]:
        """Returns the lines that say where to look."""
        words = ["--port", str(self.port), "--data-dir", str(self.folder.path), "--no-demo", *options]
        self.process = self.run_python(
            "-m",
            "mqbroker.embedded.cli",
            "up",
            *words,
            DATABASE_URL=database_url,
            REDIS_URL="",
            MQ_CALLED_FROM="/",
            **variables,
        )
        assert self.process.stdout
        lines = [self.process.stdout.readline().rstrip("\n") for _ in range(5)]
        assert all(lines), self.process.communicate()
        return lines

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process
        self.process.send_signal(number)
        self.process.communicate(timeout=300)
        return self.process.returncode

    def cpu_seconds(self) -> float:
        """The CPU that the supervisor and all processes below it have used so far."""
        assert self.process
        return processor_time.used_by_tree(psutil.Process(self.process.pid))

    def pids(self) -> dict[str, int]:
        """The processes by name, as written down for the next start."""
        return {entry["name"]: entry["pid"] for entry in json.loads(self.folder.processes.read_text())}

    def has_replaced_one_of(self, before: set[int]) -> bool:
        """Whether as many processes run as before, and not all the same."""
        now = set(self.pids().values())
        return len(now) == len(before) and now != before

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def send(self, topic: str = "orders") -> int:
        """Sends one message; returns the status."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/messages",
            data=json.dumps({"topic": topic, "body": "order 1"}).encode(),
            headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return int(answer.status)
        except OSError:
            return 0


@pytest.fixture
def new(run_python: Run, tmp_path: Path) -> Iterator[Up]:
    """A broker whose data folder is made by its first start."""
    made = Up(run_python, tmp_path / "data folder")
    yield made
    if made.process and made.process.poll() is None:
        made.stop()


@dataclass(frozen=True)
class End:
    """How a broker ended: its exit code and its time, the names of its processes, and those that were left."""

    code: int
    is_soon: bool
    processes: list[str]
    left: dict[str, int]


ENDED = End(0, True, ["PostgreSQL", "Valkey", "beat", "web", "worker"], {})


def end(up: Up, number: signal.Signals) -> End:
    """Ends a broker by a signal; soon is within ten seconds."""
    pids = up.pids()
    began = time.monotonic()
    code = up.stop(number)
    is_soon = time.monotonic() - began < at_this_load(10)
    return End(code, is_soon, sorted(pids), {name: pid for name, pid in pids.items() if identity.of(pid)})


@dataclass(frozen=True)
class FirstStart:
    """A broker that was started with KEY and stopped: its lines, what its attempt printed, and how Ctrl-C ended it."""

    folder: Path
    url: str
    lines: list[str]
    tried: str
    end: End


@pytest.fixture(scope="module")
def first_start(tmp_path_factory: pytest.TempPathFactory) -> FirstStart:
    with running() as run:
        first = Up(run, tmp_path_factory.mktemp("started once") / "data folder")
        lines = first.start("--api-key", KEY)
        attempt = lines[3].removeprefix("Try      ")
        tried = subprocess.run(attempt, shell=True, capture_output=True, text=True).stdout
        ended = end(first, signal.SIGINT)
    return FirstStart(first.folder.path, f"http://127.0.0.1:{first.port}", lines, tried, ended)


@dataclass(frozen=True)
class SecondStart:
    """A broker that was started again, by the documented unit of systemd: its lines, and the CPU seconds that it took.

    It runs for several tests in their order, each of which leaves it running.
    """

    up: Up
    lines: list[str]
    took: float


@pytest.fixture(scope="module")
def second_start(first_start: FirstStart) -> Iterator[SecondStart]:
    unit = (ROOT / "docs" / "deployment.md").read_text().partition("```ini\n")[2].partition("```")[0]
    assert "ExecStart=/srv/mqbroker/mq up --no-demo\n" in unit
    variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.MULTILINE))
    with running() as run:
        up = Up(run, first_start.folder)
        lines = up.start(**variables)
        yield SecondStart(up, lines, up.cpu_seconds())
        if up.process and up.process.poll() is None:
            up.stop()


@pytest.fixture
def up(second_start: SecondStart) -> Up:
    return second_start.up


def test_five_lines_say_where_to_look_and_what_to_try(first_start: FirstStart) -> None:
    console, key, docs, _, stop = first_start.lines

    assert re.fullmatch(rf"Console  {first_start.url}/console/  user admin, password \S{{12,}} \(shown once\)", console)
    # The user has given it, and needs it on no screen.
    assert key == f"API key  in {first_start.folder}/secrets/api-key"
    assert docs == f"Docs     {first_start.url}/docs"
    assert json.loads(first_start.tried)["send_status"] == "SEND_OK"
    assert stop == "Stop     Ctrl-C"


def test_ctrl_c_ends_everything_within_ten_seconds(first_start: FirstStart) -> None:
    assert first_start.end == ENDED


def test_a_key_that_only_the_given_database_knows_is_not_promised_to_be_kept(new: Up, prepared: str) -> None:
    with databases.copied(prepared) as url:
        _, key, _, attempt, _ = new.start(database_url=url)
        new.stop()

    assert key == "API key  one that the database knows; with --api-key it is kept here"
    assert "Bearer <api key>" in attempt


def test_a_second_start_takes_less_than_five_seconds_and_prints_no_secret_again(second_start: SecondStart) -> None:
    console, key, *_ = second_start.lines

    # Of CPU, which is the time of a start on a machine with no other work.
    assert second_start.took < at_this_load(5)
    assert second_start.up.is_ready()
    assert second_start.up.send() == 201
    assert "password" not in console
    assert KEY not in key


def test_the_documented_unit_of_systemd_lets_no_webhook_call_this_machine(up: Up) -> None:
    wire = Wire(f"http://127.0.0.1:{up.port}", KEY)
    wire.call("PUT", "/v1/producer-groups/shop", b"{}")
    refused = wire.call("POST", "/v1/producer-groups/shop/endpoints", b'{"url": "http://127.0.0.1:5432/"}')

    assert refused.status == 422, refused.document
    assert "127.0.0.1" in refused.document["detail"]


@pytest.mark.chaos
def test_whatever_is_killed_comes_back_and_the_broker_with_it(up: Up, eventually: Eventually) -> None:
    for victim in ("PostgreSQL", "Valkey", "web", "worker", "beat"):
        before = set(up.pids().values())
        os.kill(up.pids()[victim], signal.SIGKILL)

        eventually(partial(up.has_replaced_one_of, before))
        eventually(lambda: up.is_ready() and up.send() == 201)


class Callers:
    """Callers that send all the time, a message every PACE_SECONDS at most; each answer's time is kept."""

    def __init__(self, up: Up, count: int) -> None:
        self._up = up
        self._stop = threading.Event()
        self.answered: list[float] = []
        self.refused: list[int] = []
        self._threads = [threading.Thread(target=self._send_on) for _ in range(count)]

    def _send_on(self) -> None:
        while not self._stop.is_set():
            status = self._up.send()
            if status == 201:
                self.answered.append(time.monotonic())
            elif status:
                self.refused.append(status)
            time.sleep(PACE_SECONDS)

    def longest_gap(self) -> float:
        """The longest time without an answer, in seconds."""
        times = sorted(self.answered)
        return max(later - earlier for earlier, later in itertools.pairwise(times))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.chaos
def test_the_end_of_a_web_process_leaves_no_gap_in_the_answers(up: Up, eventually: Eventually) -> None:
    """Nor does a restart: a process stands by, and callers wait in the listening socket meanwhile."""
    web = psutil.Process(up.pids()["web"])

    with Callers(up, 4) as callers:
        for victim, number in ((1, signal.SIGTERM), (1, signal.SIGKILL), (0, signal.SIGHUP)):
            serving = {process.pid for process in web.children()}
            eventually(lambda: len(callers.answered) > 20)
            [web, *web.children()][victim].send_signal(number)
            eventually(partial(are_replaced, web, serving))

    assert callers.longest_gap() <= at_this_load(1)
    assert callers.refused == []


def are_replaced(web: psutil.Process, serving: set[int]) -> bool:
    """Whether as many processes serve as before, and others."""
    now = {process.pid for process in web.children()}
    return len(now) == len(serving) and not now & serving


@pytest.mark.chaos
def test_after_kill_9_of_the_supervisor_or_of_everything_the_next_start_works(up: Up, eventually: Eventually) -> None:
    pids = up.pids()
    assert up.process
    up.process.kill()
    up.process.communicate()
    eventually(lambda: not any(identity.of(pid) for pid in pids.values()))

    up.start()

    assert up.send() == 201
    for pid in [up.process.pid, *up.pids().values()]:
        os.kill(pid, signal.SIGKILL)
    up.process.communicate()

    up.start()

    assert up.send() == 201


def test_sigterm_ends_everything_within_ten_seconds(up: Up) -> None:
    assert end(up, signal.SIGTERM) == ENDED
