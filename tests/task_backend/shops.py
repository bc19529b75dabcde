"""A shop of orders with a task each, whose processes and databases are killed at random."""

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

import psycopg

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from tests.barrier.places import Place
from tests.broker.forks import ForkedChild
from tests.broker.polling import eventually
from tests.task_backend.conftest import PYTHON, Project

# MQ_TASK_ORDERS=5000 in the environment: some minutes for each shop.
ORDERS = int(os.environ.get("MQ_TASK_ORDERS", "120"))
# The fewest and the most orders that are committed between two kills.
BETWEEN_KILLS = (10, max(40, ORDERS // 40))
# In which a shop of so many orders ends, also where others use the cores.
LONGEST_SECONDS = 900 + ORDERS
READY = "SELECT count(*) FROM django_tasks_database_dbtaskresult WHERE status = 'READY'"
ENQUEUED = "SELECT args_kwargs -> 'args' ->> 0 FROM django_tasks_database_dbtaskresult"


class Victim(Protocol):
    """What is killed and started again."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


class Shop:
    """A program that places orders, a worker that runs their tasks by the broker, and the shop's own database."""

    worker_command: Sequence[str] = ("mq_worker", "--invisible-seconds", "15")

    def __init__(self, project: Project, place: Place, way: str) -> None:
        self.project = project
        self.place = place
        self.program = self._child("program", "-m", "tests.task_backend.project", "ordering", way)
        self.worker = self._child("worker", "-m", "django", *self.worker_command)
        self._running: list[Child] = []
        self.kills: Counter[str] = Counter()

    def _child(self, name: str, *words: str) -> Child:
        log = self.project.folder / f"{name}.log"
        return ForkedChild(name, [PYTHON, *words], self.project.environment, log, ROOT, stop_seconds=30)

    @property
    def orders(self) -> Counter[int]:
        """The committed orders, each once."""
        return numbers(self.place.run("SELECT id FROM project_order"))

    @property
    def runs(self) -> Counter[int]:
        """How often the task of each order took effect."""
        return numbers(self.place.run("SELECT about FROM project_run"))

    def left(self) -> object:
        """What is not at its end, which changes while tasks run; false when all is."""
        found = (*self.project.unsettled(), len(self.orders - self.runs))
        return found if any(found) else None

    def let_deliveries_expire(self) -> None:
        """Lets the time of all tasks be over that a dead worker had."""
        self.project.let_deliveries_expire()

    def after_kills(self, servers: Mapping[str, Victim]) -> None:
        """Places ORDERS orders; meanwhile processes and servers are killed in a random order, each one at least once.

        Returns when no task is left to run. Fails when no order is committed, and nothing runs, for a minute.
        """
        victims: dict[str, Victim] = {"program": self.program, "worker": self.worker, **servers}
        chosen = random.Random(7)
        turns: list[str] = []
        self._running = [self.program, self.worker]
        with ExitStack() as stack:
            for child in self._running:
                stack.callback(child.stop)
                child.start()
            while (number := self._count()) < ORDERS or len(self.kills) < len(victims):
                self._has_orders(number + chosen.randint(*BETWEEN_KILLS))
                turns = turns or chosen.sample([*victims], len(victims))
                self._kill(name := turns.pop(), victims[name])
            self._running.remove(self.program)
            self.program.kill()
            self._settle()

    def _has_orders(self, number: int) -> None:
        while (now := self._count()) < number:
            self._has_changed(now, self._count)

    def _count(self) -> int:
        [[count]] = self.place.run("SELECT count(*) FROM project_order")
        return int(count)

    def _kill(self, name: str, victim: Victim) -> None:
        victim.kill()
        if victim is self.worker:
            self.let_deliveries_expire()
        victim.start()
        self.kills[name] += 1

    def _settle(self) -> None:
        self.let_deliveries_expire()
        while left := self.left():
            self._has_changed(left, self.left)
        # It ends what it has begun.
        self.worker.stop()

    def _has_changed(self, before: object, look: Callable[[], object]) -> None:
        def has_changed() -> bool:
            # As systemd does: a program or a worker may end when its database is away.
            for child in self._running:
                if not child.is_running():
                    child.start()
            return look() != before

        eventually(has_changed, within_seconds=60)


class QueueShop(Shop):
    """The same shop with the tasks of django-tasks-db, in another database."""

    worker_command = ("db_worker", "--interval", "0.1")

    def left(self) -> object:
        # What a killed worker leaves behind as running stays so.
        [[count]] = self._queue(READY)
        return count

    def let_deliveries_expire(self) -> None:
        """Nothing expires."""

    @property
    def enqueued(self) -> Counter[int]:
        """The orders whose task is in the queue's database, ended or not."""
        return numbers(self._queue(ENQUEUED))

    def _queue(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.project.databases["other"]) as session:
            return session.execute(statement.encode()).fetchall()


def numbers(rows: Sequence[Sequence[object]]) -> Counter[int]:
    """How often each number is the only value of a row."""
    return Counter(int(str(number)) for (number,) in rows)
