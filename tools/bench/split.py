"""Splits a cell while transactions run: measures the pause, and checks that nothing is lost, doubled, late or left
behind.

A cell on its own PostgreSQL has topics with half messages that are never ended, and timers for the next day. In each
round a standby of this server is made, and a topic moves to it, while callers commit transactions at a fixed rate to
the moving topic and to another topic.
"""

import asyncio
import contextlib
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import psycopg
from mqbroker_client import Admin, Consumer, Producer
from mqbroker_client import Broker as Client

from mqbroker.embedded import commands
from mqbroker.embedded.servers.postgres import Server
from mqbroker.embedded.servers.standby import Standby, let_promote
from tools.bench import broker, load, split_load
from tools.bench.broker import KEY, Broker
from tools.bench.load import Connection
from tools.bench.report import Report
from tools.bench.split_load import CALLERS, GROUP, PER_SECOND, QUEUES, STAYING, Ledger

# The numbers of half messages and timers for each size.
SIZES = {"small": (10_000, 100_000), "large": (100_000, 1_000_000)}
AROUND_SECONDS = 3.0
A_DAY_SECONDS = 86_400
BULK = 1_000
WAITING = (
    b"SELECT count(*) FROM half_message WHERE next_check_at > now() + interval '1 hour'",
    b"SELECT count(*) FROM timer WHERE due_at > now() + interval '1 hour'",
)


@dataclass(frozen=True)
class Ground:
    """A broker, the server of its cell c1, and the cell's topics, of which one moves in each round."""

    running: Broker
    server: Server
    topics: Sequence[str]
    folder: Path
    # Ends the servers of the cells together with the broker.
    stack: contextlib.ExitStack

    @property
    def client(self) -> Client:
        return Client(self.running.url, KEY)

    def manage(self, *words: str) -> str:
        """Runs `manage.py cells` and returns its output. Raises RuntimeError."""
        command = commands.manage("cells", *words)
        done = subprocess.run(command, env=self.running.environment, cwd=commands.ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout


def main(report: Report) -> None:
    """Prints a line for each round, and a line with the worst of all figures."""
    halves, timers = SIZES["large" if "large" in report.options.cases else "small"]
    rounds = report.options.rounds
    report.fact("size", f"{halves:,} half messages and {timers:,} timers, {PER_SECOND} transactions a second")
    with _ground(rounds) as ground:
        report.progress("storing what waits")
        _fill(ground, halves, timers)
        found = []
        for number in range(rounds):
            report.progress(f"split {number + 1} of {rounds}")
            found.append(_round(ground, number))
            report.line(f"split {number + 1}", found[-1])
        report.line("the worst", {name: max(figures[name] for figures in found) for name in found[0]})


@contextlib.contextmanager
def _ground(rounds: int) -> Iterator[Ground]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mqbench-split-")))
        folder.chmod(0o711)
        running = stack.enter_context(broker.running(worker=True))
        server = stack.enter_context(_started(Server(folder / "c1")))
        let_promote(server, urlsplit(server.url).path[1:])
        ground = Ground(running, server, [f"moving-{number}" for number in range(rounds)], folder, stack)
        ground.manage("add", "c1", server.url)
        ground.manage("open", "c1")
        for topic in (STAYING, *ground.topics):
            Admin(ground.client).create_topic(topic, queues=QUEUES)
        yield ground


@contextlib.contextmanager
def _started(server: Server) -> Iterator[Server]:
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _fill(ground: Ground, halves: int, timers: int) -> None:
    """Stores half messages and timers, spread over all topics."""
    half = {"op": "half", "producer_group": f"{GROUP}-waiting", "check_immunity_seconds": A_DAY_SECONDS}
    timer = {"op": "send", "delay_seconds": A_DAY_SECONDS}
    work = [*[half] * (halves // BULK), *[timer] * (timers // BULK)]
    topics = (*ground.topics, STAYING)

    def store(operation: dict[str, object]) -> None:
        operations = [{**operation, "topic": topics[each % len(topics)], "body": "waits"} for each in range(BULK)]
        status, answer = load.run(_post(ground.running.port, {"operations": operations}))
        refused = Counter(str(one["status"]) for one in answer["results"] if one["status"] != 201)
        if status != 200 or refused:
            raise RuntimeError(f"a bulk was refused: {refused}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(store, work))


async def _post(port: int, document: object) -> tuple[int, dict[str, list[dict[str, object]]]]:
    connection = await Connection.open(port)
    status, answer = await connection.ask("POST", "/v1/bulk", msgspec.json.encode(document))
    connection.close()
    return status, msgspec.json.decode(answer)


def _round(ground: Ground, number: int) -> dict[str, float]:
    topic, target = ground.topics[number], f"c{number + 2}"
    standby = ground.stack.enter_context(_started(_copied(ground, target)))
    url = urlsplit(standby.url)._replace(path=urlsplit(ground.server.url).path).geturl()
    before, ledger = _waiting([ground.server.url]), Ledger()
    words = ("split", "c1", "--into", target, "--standby", url, "--home", topic)
    figures = load.run(_beside(ground, topic, words, ledger))
    changed = abs(_waiting([ground.server.url, url]) - before)
    lost, twice = load.run(split_load.compared(ground.running.port, ledger, (topic, STAYING)))
    gaps = {"gap s": ledger.longest_gap(topic), "gap of another topic s": ledger.longest_gap(STAYING)}
    return {**figures, **gaps, "lost": lost, "twice": twice, "halves and timers changed": changed}


def _copied(ground: Ground, name: str) -> Standby:
    standby = Standby(ground.server, ground.folder / name)
    standby.copy()
    return standby


async def _beside(ground: Ground, topic: str, words: Sequence[str], ledger: Ledger) -> dict[str, float]:
    """Runs a split while its load runs. Returns the figures that are known at the end of the split."""
    stop, port = asyncio.Event(), ground.running.port
    consumer, producer = Consumer(ground.client, GROUP), Producer(ground.client, GROUP)
    callers = [asyncio.create_task(split_load.transact(port, topic, ledger, stop, caller)) for caller in range(CALLERS)]
    await asyncio.sleep(AROUND_SECONDS)
    held = await asyncio.to_thread(split_load.take, consumer, topic)
    undecided = await asyncio.to_thread(producer.begin, topic, b"undecided", check_immunity_seconds=1)
    late = asyncio.create_task(asyncio.to_thread(split_load.lateness, ground.client, topic))
    said = await asyncio.to_thread(ground.manage, *words)
    acked = await asyncio.to_thread(consumer.ack, held)
    figures = {
        "fence s": float(said.splitlines()[-1].split(" writes for ")[1].split()[0]),
        "acks refused": sum(settled.status != 200 for settled in acked),
        "late s": await late,
        "not checked": float(not await asyncio.to_thread(split_load.is_checked, producer, undecided.transaction_id)),
    }
    await asyncio.sleep(AROUND_SECONDS)
    stop.set()
    await asyncio.gather(*callers)
    return figures


def _waiting(urls: Sequence[str]) -> int:
    """The number of waiting half messages and timers in these databases."""
    total = 0
    for url in urls:
        with psycopg.connect(url) as session:
            for statement in WAITING:
                [(count,)] = session.execute(statement).fetchall()
                total += count
    return total
