"""Transfers between two databases: whatever process is killed, the sum stands, and each transfer is applied once.

`MQ_TRANSFERS=2000 ./mq test tests/chaos/test_transfers.py` makes more of them, with as many more kills.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import psycopg
import pytest
from mqbroker_client.barrier import Barrier
from mqbroker_client.barrier.inbox import Inbox

from mqbroker.embedded.commands import ROOT
from tests.broker import databases
from tests.broker.characters import name
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.chaos.bank import ACCOUNTS, BALANCE, TABLES

TRANSFERS = int(os.environ.get("MQ_TRANSFERS", "600"))
PRODUCERS, CONSUMERS = 3, 2
# So many transfers later the next process is killed, somewhere within a second.
BETWEEN_KILLS = 60


@dataclass
class Worker:
    """A process that is started again whenever it is killed."""

    words: list[str]
    process: "subprocess.Popen[bytes]"

    @classmethod
    def start(cls, *words: str) -> "Worker":
        return cls(list(words), cls._popen(words))

    @staticmethod
    def _popen(words: "tuple[str, ...] | list[str]") -> "subprocess.Popen[bytes]":
        path = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'client'}", "API_KEY": API_KEY}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.bank", *words], env={**os.environ, **path}, cwd=ROOT
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def replace(self) -> None:
        self.kill()
        self.process = self._popen(self.words)

    def is_done(self) -> bool:
        return self.process.poll() == 0


@contextmanager
def bank() -> Iterator[str]:
    """The URL of a database with its accounts."""
    with databases.fresh() as url:
        with psycopg.connect(url) as connection:
            for statement in TABLES:
                connection.execute(statement)
        yield url


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode()).fetchall()


def balance(url: str) -> int:
    [(total,)] = rows(url, "SELECT sum(balance)::int FROM accounts")
    assert isinstance(total, int)
    return total


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_sum_stands_and_each_transfer_is_applied_once(broker: RunningBroker) -> None:
    topic, group, consumers = name("transfers"), name("paying-bank"), name("booking-bank")
    with bank() as paying, bank() as booking:
        Barrier(lambda: psycopg.connect(paying), group).create_table()
        Inbox(consumers, lambda: psycopg.connect(booking)).create_table()
        workers = [Worker.start("book", booking, broker.urls[1], topic, consumers) for _ in range(CONSUMERS)]
        payers = [Worker.start("pay", paying, broker.url, topic, group, str(TRANSFERS)) for _ in range(PRODUCERS)]
        try:
            kills = killed_until_paid(payers, workers, paying)
            eventually(lambda: balance(paying) + balance(booking) == 2 * ACCOUNTS * BALANCE, within_seconds=300)
            paid = rows(paying, "SELECT transfer_id, amount, 1 FROM transfers ORDER BY 1")
            eventually(lambda: rows(booking, "SELECT * FROM transfers ORDER BY 1") == paid, within_seconds=120)
        finally:
            for worker in [*workers, *payers]:
                worker.kill()

        assert len(paid) >= TRANSFERS
        assert kills > PRODUCERS + CONSUMERS
        assert balance(paying) + balance(booking) == 2 * ACCOUNTS * BALANCE


def killed_until_paid(payers: list[Worker], workers: list[Worker], paying: str) -> int:
    """Kills one process after the other until everything is paid; how many."""
    kills = 0
    while not all(payer.is_done() for payer in payers):
        eventually(partial(is_paid, paying, min((kills + 1) * BETWEEN_KILLS, TRANSFERS)), within_seconds=120)
        time.sleep(random.random())
        victim = random.choice([*workers, *(payer for payer in payers if not payer.is_done())])
        if victim in payers and victim.process.poll() is not None:
            continue
        victim.replace()
        kills += 1
    return kills


def is_paid(paying: str, transfers: int) -> bool:
    """Whether so many transfers are paid."""
    [(count,)] = rows(paying, "SELECT count(*)::int FROM transfers")
    assert isinstance(count, int)
    return count >= transfers
