"""Random operations with random splits among them, against a model of what each topic must hold."""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from mqbroker_client import (
    Admin,
    CheckPoller,
    Consumer,
    Delivery,
    HalfMessage,
    LocalTransactionState,
    Producer,
)
from mqbroker_client.core.errors import TransactionEnded

from tests.broker import characters
from tests.broker.polling import at_this_load
from tests.broker.prepared_servers import url_in
from tests.broker.running import RunningBroker
from tests.moves.ground import Ground

# MQ_SPLITS=20 in the environment has so many; MQ_SEED repeats a run.
SPLITS = int(os.environ.get("MQ_SPLITS", "2"))
SEED = int(os.environ.get("MQ_SEED", "0")) or random.randrange(1_000_000)
OPERATIONS = 60
TOPICS = SPLITS + 1
# Of what is handed out and not settled: longer than the test.
INVISIBLE_SECONDS = 300


@dataclass
class Model:
    """What one topic must hold. A body is in one place: pending, rolled back, waiting, held, or acked."""

    topic: str
    pending: dict[UUID, str] = field(default_factory=dict)
    rolled_back: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    held: dict[str, Delivery] = field(default_factory=dict)
    acked: set[str] = field(default_factory=set)


class Run:
    """One caller of a broker whose web processes it takes by turns of a seed, and what it knows of each topic."""

    def __init__(self, broker: RunningBroker, ground: Ground, seed: int) -> None:
        self._random = random.Random(seed)
        self._broker, self._ground = broker, ground
        self._clients = [broker.client(web) for web in range(2)]
        self._group = characters.name("model")
        self.models = [Model(characters.name("topic")) for _ in range(TOPICS)]
        for model in self.models:
            Admin(self._clients[0]).create_topic(model.topic, queues=2)
        self._number = 0

    @property
    def producer(self) -> Producer:
        return Producer(self._random.choice(self._clients), self._group)

    @property
    def consumer(self) -> Consumer:
        return Consumer(self._random.choice(self._clients), self._group)

    def operate(self) -> None:
        """One operation of those that are possible, on a topic of chance."""
        kinds: list[Callable[[Model], None]] = [self._send, self._begin, self._end, self._receive, self._ack]
        kinds += [self._nack, self._contradict]
        self._random.choice(kinds)(self._random.choice(self.models))

    def split(self) -> None:
        """One of the topics goes to a new cell, from the cell that most of them are in."""
        moving = self._random.choice(self.models).topic
        source = self._cell_of(moving)
        if source != "c1":  # its server has followers of its own
            return
        url = url_in(self._ground.standby(), "mqbroker_c1")
        words = ("split", "c1", "--into", characters.name("c"), "--standby", url, "--home", moving)
        self._ground.cells(*words)

    def _cell_of(self, topic: str) -> str:
        [(cell,)] = self._ground.sql(
            "c0", "SELECT c.name FROM topic AS t JOIN cell AS c ON c.id = t.cell_id WHERE t.name = %s", topic
        )
        return str(cell)

    def _body(self) -> str:
        self._number += 1
        return f"{self._number}"

    def _send(self, model: Model) -> None:
        body = self._body()
        self.producer.send(model.topic, body, delay_seconds=self._random.choice([None, None, 1.0, 2.5]))
        model.waiting.add(body)

    def _begin(self, model: Model) -> None:
        body = self._body()
        model.pending[self.producer.begin(model.topic, body, check_immunity_seconds=600).transaction_id] = body

    def _end(self, model: Model) -> None:
        if model.pending:
            transaction_id, body = model.pending.popitem()
            commits = self._random.random() < 0.7
            state = LocalTransactionState.COMMIT if commits else LocalTransactionState.ROLLBACK
            for _ in range(2):  # a repeat is answered as the first one
                assert self.producer.end(transaction_id, state).state == ("COMMITTED" if commits else "ROLLED_BACK")
            (model.waiting if commits else model.rolled_back).add(body)
            self._ended = transaction_id, commits

    _ended: tuple[UUID, bool] | None = None

    def _contradict(self, model: Model) -> None:
        if self._ended is not None:
            transaction_id, commits = self._ended
            other = LocalTransactionState.ROLLBACK if commits else LocalTransactionState.COMMIT
            with pytest.raises(TransactionEnded):
                self.producer.end(transaction_id, other)

    def _receive(self, model: Model) -> None:
        for delivery in self.consumer.receive(model.topic, max_messages=4, invisible_seconds=INVISIBLE_SECONDS):
            body = delivery.body.decode()
            assert body in model.waiting, f"{body} was delivered again, or before its time"
            model.waiting.remove(body)
            model.held[body] = delivery

    def _ack(self, model: Model) -> None:
        if model.held:
            body, delivery = model.held.popitem()
            [settled] = self.consumer.ack([delivery])
            assert settled.status == 200, (body, settled)
            model.acked.add(body)

    def _nack(self, model: Model) -> None:
        if model.held:
            body, delivery = model.held.popitem()
            [settled] = self.consumer.nack([delivery], reason="the model says so", delay_seconds=1)
            assert settled.status == 200, (body, settled)
            model.waiting.add(body)

    def finish(self) -> None:
        """Commits what is pending by the answers of a poller, and consumes all that waits: nothing else is there."""
        committed: list[str] = []

        def check(half: HalfMessage) -> LocalTransactionState:
            committed.append(half.body.decode())
            return LocalTransactionState.COMMIT

        for model in self.models:
            for transaction_id in model.pending:
                self._broker.wire().post(f"/v1/transactions/{transaction_id}/check", {})
        pending = {body for model in self.models for body in model.pending.values()}
        poller = CheckPoller(self.producer, check, wait_seconds=1)
        until = time.monotonic() + at_this_load(30)
        while set(committed) != pending and time.monotonic() < until:
            poller.answer_due()
        poller.close()
        for model in self.models:
            model.waiting.update(model.pending.values())
            while model.waiting and time.monotonic() < until:
                self._receive(model)
        assert set(committed) == pending
        assert [sorted(model.waiting) for model in self.models] == [[]] * TOPICS
        for model in self.models:
            assert self.consumer.receive(model.topic, max_messages=1) == []


def test_random_operations_with_splits_among_them_agree_with_a_model(ground: Ground, broker: RunningBroker) -> None:
    print(f"MQ_SEED={SEED}")
    ground.cells("open", "c1")
    run = Run(broker, ground, SEED)
    for _ in range(SPLITS):
        for _ in range(OPERATIONS):
            run.operate()
        run.split()
    for _ in range(OPERATIONS):
        run.operate()
    run.finish()
