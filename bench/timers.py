"""A million pending timers beside a thousand, and a delay level with a backlog: the cost of one more delay.

Two brokers run at the same time and are measured in turns, so that other load of the machine weighs on both.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psycopg

from bench import broker, load, machine
from bench.broker import Broker
from bench.load import Connection
from bench.report import Report

FEW, MANY = (1_000, 1_000), (1_000_000, 100_000)
ROUNDS = 8
PER_ROUND = 2_000
PER_BULK = 100
CONNECTIONS = 4
BODY = "x" * 200
# Timers that pend: far enough for the whole measurement, and within the longest timer.
NEAREST_SECONDS, FARTHEST_SECONDS = 2 * 3600, 30 * 86400
# The last level waits two hours, the second five seconds: longer than sending a round takes.
LEVEL_THAT_PENDS, LEVEL_TO_RELEASE, RELEASE_SECONDS = 18, 2, 5.0
GIVE_UP_SECONDS = 60

BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'mqbroker-%'"
RELEASED = """
SELECT count(*), avg(extract(EPOCH FROM c.entered_at - m.stored_at))
FROM consume_queue AS c
INNER JOIN commit_log AS m ON m.log_offset = c.log_offset AND m.segment_id = c.log_segment
INNER JOIN topic AS t ON t.id = c.topic_id
WHERE t.name = %(topic)s
"""
# The last of the pending timers come after the settling. After a checkpoint PostgreSQL logs the whole of each page that
# is changed for the first time, and these change the pages of the index that the rounds will change: measured is the
# time between two checkpoints, and not the moment after one.
LAST_PERCENT = 4
# As autovacuum does within a minute of such a load.
SETTLE = ("VACUUM (ANALYZE) timer", "VACUUM (ANALYZE) consume_queue", "VACUUM (ANALYZE) commit_log")

Delay = dict[str, float]


def pending_timer(generator: random.Random) -> Delay:
    """Somewhere among the timers that pend."""
    return {"delay_seconds": round(generator.uniform(NEAREST_SECONDS, FARTHEST_SECONDS), 3)}


def pending_level(_: random.Random) -> Delay:
    """Behind the backlog of a level."""
    return {"delay_level": LEVEL_THAT_PENDS}


@dataclass
class Side:
    """One of the two brokers, and what its rounds cost: microseconds per message of the clock and of PostgreSQL."""

    running: Broker
    connection: psycopg.Connection
    generator: random.Random = field(default_factory=lambda: random.Random(7))
    clock_us: dict[str, list[float]] = field(default_factory=dict)
    database_us: dict[str, list[float]] = field(default_factory=dict)

    def fill(self, timers: int, level: int) -> None:
        """Sends the messages that pend, through the public API."""
        last = timers * LAST_PERCENT // 100
        self.send("pending", pending_level, level, _per_bulk(level))
        self.send("pending", pending_timer, timers - last, _per_bulk(timers - last))
        for statement in SETTLE:
            self.connection.execute(statement.encode())
        self.send("pending", pending_timer, last, _per_bulk(last))

    def round(self, kind: str, pending: Callable[[random.Random], Delay], due: Delay) -> None:
        """Sends delayed messages, recalls them, and has others released."""
        with self.measured(f"send, {kind}"):
            handles = self.send("pending", pending, PER_ROUND, PER_BULK)
        with self.measured(f"recall, {kind}"):
            self.recall(handles)
        topic = f"released-{len(self.clock_us)}-{self.generator.getrandbits(32)}"
        began = time.monotonic()
        self.send(topic, lambda _: due, PER_ROUND, PER_BULK)
        time.sleep(max(0.0, began + RELEASE_SECONDS - 0.2 - time.monotonic()))
        with self.measured(f"release, {kind}"):
            late_seconds = self.wait_for(topic) - RELEASE_SECONDS
        # The figure is the mean lateness, not the time of the wait.
        self.clock_us[f"release, {kind}"][-1] = late_seconds * 1e6

    def send(self, topic: str, delay: Callable[[random.Random], Delay], messages: int, per_bulk: int) -> list[str]:
        """Sends delayed messages; returns their recall handles."""
        handles: list[str] = []

        async def one_bulk(connection: Connection, _: int) -> bool:
            message = {"op": "send", "topic": topic, "body": BODY}
            operations = [{**message, **delay(self.generator)} for _ in range(per_bulk)]
            _, answer = await connection.post("/v1/bulk", {"operations": operations})
            results = answer["results"]
            assert isinstance(results, list)
            handles.extend(result["recall_handle"] for result in results if result["status"] == 201)
            return True

        load.run(load.closed_loop(self.running.port, CONNECTIONS, messages // per_bulk, one_bulk))
        if len(handles) != messages:
            raise RuntimeError(f"{messages - len(handles)} of {messages} delayed messages were refused")
        return handles

    def recall(self, handles: list[str]) -> None:
        """Takes delayed messages back, a request each."""

        async def one(connection: Connection, number: int) -> bool:
            status, _ = await connection.post("/v1/messages/recall", {"recall_handle": handles[number]})
            return status == 200

        measured = load.run(load.closed_loop(self.running.port, CONNECTIONS, len(handles), one))
        if measured.refused:
            raise RuntimeError(f"{measured.refused} of {len(handles)} recalls were refused")

    def wait_for(self, topic: str) -> float:
        """Seconds from the store to the visibility of the messages of a topic on the average, once all are visible."""
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < deadline:
            row = self.connection.execute(RELEASED, {"topic": topic}).fetchone()
            if row is not None and row[0] == PER_ROUND:
                return float(row[1])
            time.sleep(0.1)
        raise RuntimeError(f"not all messages of {topic} are visible after {GIVE_UP_SECONDS} s")

    @contextlib.contextmanager
    def measured(self, what: str) -> Iterator[None]:
        """Keeps the clock and CPU time of the block per message."""
        cpu, clock = self.database_cpu_seconds(), time.perf_counter()
        yield
        self.clock_us.setdefault(what, []).append((time.perf_counter() - clock) * 1e6 / PER_ROUND)
        self.database_us.setdefault(what, []).append((self.database_cpu_seconds() - cpu) * 1e6 / PER_ROUND)

    def database_cpu_seconds(self) -> float:
        """CPU of the broker's backends in PostgreSQL so far."""
        return sum(machine.cpu_seconds(pid) for (pid,) in self.connection.execute(BACKENDS))


def main(report: Report) -> None:
    """Prints the cost of a delay with few and with many pending ones, and the ratios of the two."""
    with contextlib.ExitStack() as stack:
        few, many = (_side(stack) for _ in range(2))
        for side, (timers, level) in ((few, FEW), (many, MANY)):
            began = time.perf_counter()
            side.fill(timers, level)
            report.line(f"fill with {timers:,} timers, {level:,} at a level", {"seconds": time.perf_counter() - began})
        for number in range(ROUNDS):
            for side in (few, many) if number % 2 else (many, few):
                side.round("timer", pending_timer, {"delay_seconds": RELEASE_SECONDS})
                side.round("level", pending_level, {"delay_level": LEVEL_TO_RELEASE})
    for what in few.clock_us:
        report.line(what, _comparison(few, many, what))


def _side(stack: contextlib.ExitStack) -> Side:
    running = stack.enter_context(broker.running())
    connection = stack.enter_context(psycopg.connect(running.database_url, autocommit=True))
    return Side(running, connection)


def _per_bulk(messages: int) -> int:
    """Up to the limit of a bulk, and a divisor of the numbers above."""
    return min(1000, max(10, messages // 100))


def _comparison(few: Side, many: Side, what: str) -> dict[str, float]:
    """The least of the rounds, since other load of the machine only adds to it, and their ratios."""
    figures: dict[str, float] = {}
    for name, ours, theirs in (
        ("clock_us", few.clock_us, many.clock_us),
        ("database_us", few.database_us, many.database_us),
    ):
        of_few, of_many = min(ours[what]), min(theirs[what])
        figures |= {f"{name}_few": of_few, f"{name}_many": of_many, f"{name}_ratio": of_many / of_few}
    return figures
