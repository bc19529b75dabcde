"""Splits of a cell beside transactions: the pause, and that nothing is lost, doubled, late or forgotten by them.

A cell on a PostgreSQL of its own has topics with half messages that nobody ends and timers of the next day. In each
round a standby of that server is made, and one of the topics moves to it, while callers commit transactions at a fixed
rate to the topic that moves and to one that stays.
"""

import asyncio
import contextlib
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import psycopg
from mqbroker_client import (
    Admin,
    CheckPoller,
    Consumer,
    Delivery,
    HalfMessage,
    LocalTransactionState,
    Message,
    Producer,
)
from mqbroker_client import Broker as Client
from mqbroker_client.ids import uuid7

from bench import broker, load
from bench.broker import KEY, Broker
from bench.load import Connection
from bench.report import Report
from embedded import commands
from embedded.servers.postgres import Server
from embedded.servers.standby import Standby, let_promote

# The half messages and the timers of each size.
SIZES = {"small": (10_000, 100_000), "large": (100_000, 1_000_000)}
PER_SECOND = 500
CALLERS = 25
QUEUES = 4
HELD = 32
DELAYED = 32
DELAY_SECONDS = 4.0
AROUND_SECONDS = 3.0
A_DAY_SECONDS = 86_400
BULK = 1_000
PAGE = 500
GROUP = "bench-split"
# Of a call that is refused meanwhile: it is repeated under its ids.
PAUSE_SECONDS = 0.01


@dataclass
class Ledger:
    """What callers were told: bodies acknowledged, and when the answers of each topic came, by the monotonic clock."""

    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    answered: dict[str, list[float]] = field(default_factory=dict)

    def note(self, topic: str, body: str) -> None:
        self.acknowledged.setdefault(topic, []).append(body)
        self.answered.setdefault(topic, []).append(time.monotonic())

    def longest_gap(self, topic: str) -> float:
        """The longest time between two acknowledgements of a topic, in seconds."""
        times = self.answered[topic]
        return max(after - before for before, after in pairwise(times))


@dataclass(frozen=True)
class Ground:
    """A broker, the server of its cell c1, and the topics there of which one moves in each round."""

    running: Broker
    server: Server
    topics: Sequence[str]
    folder: Path

    @property
    def client(self) -> Client:
        return Client(self.running.url, KEY)

    def manage(self, *words: str) -> str:
        """What `manage.py cells` said. Raises RuntimeError."""
        command = commands.manage("cells", *words)
        done = subprocess.run(command, env=self.running.environment, cwd=commands.ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout


def main(report: Report) -> None:
    """Prints a line for each round, and one for the worst of all."""
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
        report.line("the worst", {name: max(one[name] for one in found) for name in found[0]})


@contextlib.contextmanager
def _ground(rounds: int) -> Iterator[Ground]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mqbench-split-")))
        folder.chmod(0o711)
        running = stack.enter_context(broker.running(worker=True))
        server = Server(folder / "c1")
        stack.callback(server.stop)
        server.start()
        let_promote(server, urlsplit(server.url).path[1:])
        topics = [f"moving-{number}" for number in range(rounds)]
        ground = Ground(running, server, topics, folder)
        ground.manage("add", "c1", server.url)
        ground.manage("open", "c1")
        for topic in ("staying", *topics):
            Admin(ground.client).create_topic(topic, queues=QUEUES)
        yield ground


def _fill(ground: Ground, halves: int, timers: int) -> None:
    """Spreads what waits over all topics."""

    def store(numbered: tuple[int, str]) -> None:
        number, kind = numbered
        operations = []
        for each in range(BULK):
            topic = (*ground.topics, "staying")[(number + each) % (len(ground.topics) + 1)]
            if kind == "half":
                more = {"producer_group": f"{GROUP}-waiting", "check_immunity_seconds": A_DAY_SECONDS}
                operations.append({"op": "half", "topic": topic, "body": "waits", **more})
            else:
                operations.append({"op": "send", "topic": topic, "body": "waits", "delay_seconds": A_DAY_SECONDS})
        status, answer = load.run(_posted(ground.running.port, {"operations": operations}))
        wrong = Counter(one["status"] for one in answer["results"] if one["status"] != 201) if status == 200 else answer
        if wrong:
            raise RuntimeError(f"a bulk was refused: {wrong}")

    work = [(number, "half") for number in range(halves // BULK)] + [
        (number, "timer") for number in range(timers // BULK)
    ]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(store, work))


async def _posted(port: int, document: object) -> tuple[int, dict[str, list[dict[str, object]]]]:
    connection = await Connection.open(port)
    try:
        status, answer = await connection.ask("POST", "/v1/bulk", msgspec.json.encode(document))
        return status, msgspec.json.decode(answer)
    finally:
        connection.close()


def _round(ground: Ground, number: int) -> dict[str, float]:
    topic, target = ground.topics[number], f"c{number + 2}"
    standby = Standby(ground.server, ground.folder / target)
    standby.copy()
    standby.start()
    url = urlsplit(standby.url)._replace(path=urlsplit(ground.server.url).path).geturl()
    before = _waiting([ground.server.url])
    ledger = Ledger()
    stop = asyncio.Event()
    consumer = Consumer(ground.client, GROUP)
    producer = Producer(ground.client, GROUP)

    async def beside() -> tuple[str, list[float]]:
        callers = [asyncio.create_task(_caller(ground, topic, ledger, stop, one)) for one in range(CALLERS)]
        await asyncio.sleep(AROUND_SECONDS)
        held = await asyncio.to_thread(_held, producer, consumer, topic)
        undecided = await asyncio.to_thread(producer.begin, topic, b"undecided", check_immunity_seconds=1)
        late = asyncio.create_task(asyncio.to_thread(_lateness, ground, topic))
        words = ("split", "c1", "--into", target, "--standby", url, "--home", topic)
        said = await asyncio.to_thread(ground.manage, *words)
        unacked = sum(one.status != 200 for one in await asyncio.to_thread(consumer.ack, held))
        lateness = await late
        asked = await asyncio.to_thread(_asked, producer, undecided.transaction_id)
        await asyncio.sleep(AROUND_SECONDS)
        stop.set()
        await asyncio.gather(*callers)
        return said, [max(lateness), float(unacked), float(not asked)]

    said, (late, unacked, unasked) = load.run(beside())
    after = _waiting([ground.server.url, url])
    lost, twice = _compared(ground, ledger, (topic, "staying"))
    standby_pause = float(said.splitlines()[-1].split("for ")[1].split(" s")[0])
    return {
        "fence s": standby_pause,
        "gap of the topic s": ledger.longest_gap(topic),
        "gap of the other s": ledger.longest_gap("staying"),
        "lost": lost,
        "twice": twice,
        "halves and timers changed": abs(after - before),
        "acks refused": unacked,
        "late s": late,
        "not asked": unasked,
    }


async def _caller(ground: Ground, moving: str, ledger: Ledger, stop: asyncio.Event, caller: int) -> None:
    """Transactions at a fixed rate, by turns to both topics; each is repeated until it is done."""
    connection = await Connection.open(ground.running.port)
    due = time.monotonic() + caller / PER_SECOND
    try:
        while not stop.is_set():
            topic = moving if (round(due * PER_SECOND) // CALLERS + caller) % 2 else "staying"
            id_ = str(uuid7())
            half = {"topic": topic, "body": id_, "transaction_id": id_, "producer_group": GROUP}
            end = {"producer_group": GROUP, "state": "COMMIT", "topic": topic}
            await _insist(connection, "/v1/transactions", half)
            await _insist(connection, f"/v1/transactions/{id_}/end", end)
            ledger.note(topic, id_)
            due += CALLERS / PER_SECOND
            await asyncio.sleep(max(due - time.monotonic(), 0))
    finally:
        connection.close()


async def _insist(connection: Connection, path: str, document: object) -> None:
    body = msgspec.json.encode(document)
    while (status := (await connection.ask("POST", path, body))[0]) not in (200, 201):
        if status != 503:
            raise RuntimeError(f"{path} was answered {status}")
        await asyncio.sleep(PAUSE_SECONDS)


def _held(producer: Producer, consumer: Consumer, topic: str) -> list[Delivery]:
    """Deliveries of a topic that are acked behind the split."""
    held: list[Delivery] = []
    while len(held) < HELD:
        held += consumer.receive(topic, max_messages=HELD - len(held), invisible_seconds=120, wait_seconds=2)
    return held


def _lateness(ground: Ground, topic: str) -> list[float]:
    """How late delayed messages of a split reach a waiting consumer, in seconds. The clocks are one machine's."""
    producer, consumer = Producer(ground.client, GROUP), Consumer(ground.client, f"{GROUP}-late")
    consumer.receive(topic, filter="late")  # the group begins here
    due = {}
    for number in range(DELAYED):
        message = Message(topic, f"{number}".encode(), tags="late", delay_seconds=DELAY_SECONDS + number / DELAYED)
        due[f"{number}"] = time.time() + DELAY_SECONDS + number / DELAYED
        producer.send_message(message)
    late = []
    while due:
        for delivery in consumer.receive(topic, max_messages=DELAYED, wait_seconds=10, filter="late"):
            consumer.ack([delivery])
            late.append(time.time() - due.pop(delivery.body.decode()))
    return late


def _asked(producer: Producer, transaction_id: object) -> bool:
    """Whether a poller is asked about a half message behind the split, and commits it."""
    asked = []

    def check(half: HalfMessage) -> LocalTransactionState:
        asked.append(half.transaction_id)
        return LocalTransactionState.COMMIT

    poller = CheckPoller(producer, check, wait_seconds=2)
    until = time.monotonic() + 20
    while transaction_id not in asked and time.monotonic() < until:
        poller.answer_due()
    poller.close()
    return transaction_id in asked


def _waiting(urls: Sequence[str]) -> int:
    """The half messages that nobody ends, and the timers of the next day, in these databases."""
    total = 0
    for url in urls:
        with psycopg.connect(url) as session:
            for statement in (
                b"SELECT count(*) FROM half_message WHERE next_check_at > now() + interval '1 hour'",
                b"SELECT count(*) FROM timer WHERE due_at > now() + interval '1 hour'",
            ):
                [(count,)] = session.execute(statement).fetchall()
                total += count
    return total


def _compared(ground: Ground, ledger: Ledger, topics: Sequence[str]) -> tuple[int, int]:
    """How many acknowledged bodies are not there, and how many are there twice."""
    found: Counter[str] = Counter()
    for topic in topics:
        found += load.run(_bodies(ground.running.port, topic))
    acknowledged = [body for topic in topics for body in ledger.acknowledged[topic]]
    return sum(not found[body] for body in acknowledged), sum(found[body] > 1 for body in acknowledged)


async def _bodies(port: int, topic: str) -> Counter[str]:
    connection = await Connection.open(port)
    found: Counter[str] = Counter()
    for queue in range(QUEUES):
        offset = 0
        while True:
            path = f"/v1/topics/{topic}/queues/{queue}/messages?offset={offset}&max={PAGE}"
            _, answer = await connection.ask("GET", path)
            page = msgspec.json.decode(answer)["messages"]
            if not page:
                break
            found.update(entry["message"]["body"] for entry in page)
            offset = page[-1]["queue_offset"] + 1
    connection.close()
    return found
