"""A crowd of consumers in one group, each a process of its own, some of which are killed all the time."""

import random
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from uuid import uuid4

import psycopg

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from tests.broker.forks import ForkedChild
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.delivery.diaries import Diaries, Step

CONSUMERS = 8
INVISIBLE_SECONDS = 2.0
PAUSE_SECONDS = (0.1, 0.5)
MESSAGES_PER_ROUND = 40
# How long the delivery is over by now whose message has waited longest to be offered again.
ANY_IN_FLIGHT = "(SELECT 1 FROM receipt LIMIT 1) UNION ALL (SELECT 1 FROM bundle LIMIT 1)"
OVERDUE = """
SELECT extract(EPOCH FROM max(now() - f.expires_at))::float
FROM (SELECT expires_at FROM receipt WHERE state = 'flight' UNION ALL SELECT expires_at FROM bundle) AS f
"""


@dataclass
class MortalCrowd:
    """Consumers that are killed one after another and replaced, while messages come in."""

    broker: RunningBroker
    topic: str
    group: str
    folder: Path
    kills: int = 0
    most_overdue_seconds: float = 0.0
    sent: list[str] = field(default_factory=list)
    _consumers: list[Child] = field(default_factory=list)

    def consume_and_die(self, seconds: float) -> None:
        """Lets so long pass, in which messages are sent and consumers die."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._send()
            self.look()
            time.sleep(random.uniform(*PAUSE_SECONDS))
            victim = random.choice(self._consumers)
            victim.kill()
            victim.start()
            self.kills += 1

    def look(self) -> None:
        """Measures how late the broker offers messages whose invisible time is over."""
        with psycopg.connect(self.broker.database_of(self.topic), autocommit=True) as connection:
            found = connection.execute(OVERDUE).fetchone()
        assert found is not None
        self.most_overdue_seconds = max(self.most_overdue_seconds, found[0] or 0.0)

    def _send(self) -> None:
        """No consumer can do one in fifty. A send without an answer is repeated with the same ids."""
        messages = {str(uuid4()): "poison" if random.random() < 0.02 else "order" for _ in range(MESSAGES_PER_ROUND)}
        operations = [{"op": "send", "topic": self.topic, "body": messages[id], "message_id": id} for id in messages]
        eventually(lambda: self._is_sent(operations))
        self.sent += messages

    def _is_sent(self, operations: list[Document]) -> bool:
        try:
            return all(result["status"] in (200, 201) for result in self.broker.wire(1).bulk(*operations))
        except (OSError, HTTPException, AssertionError):
            return False

    def finish(self) -> Diaries:
        """Stops killing; returns the diaries when everything is done."""
        return eventually(self._finished, within_seconds=40)

    def _finished(self) -> Diaries | None:
        self.look()
        diaries = self.diaries()
        return diaries if diaries.done() | diaries.perhaps_done() >= set(self.sent) and self._is_idle() else None

    def _is_idle(self) -> bool:
        lag = self.broker.wire(1).get(f"/v1/consumer-groups/{self.group}/offsets").document["lag"]
        with psycopg.connect(self.broker.database_of(self.topic), autocommit=True) as connection:
            return lag == 0 and connection.execute(ANY_IN_FLIGHT).fetchone() is None

    def diaries(self) -> Diaries:
        """What all consumers have written until now, and the group's dead letters."""
        lines = [line for diary in self.folder.glob("*.diary") for line in diary.read_text().splitlines()]
        dead = defaultdict(list)
        for letter in self._dead_letters():
            dead[letter["message"]["message_id"]].append(datetime.fromisoformat(letter["dead_at"]).timestamp())
        return Diaries([Step.read(line) for line in lines], dead)

    def _dead_letters(self) -> Iterator[Document]:
        cursor: int | None = 0
        while cursor is not None:
            page = self.broker.wire(1).get(f"/v1/dead-letters/{self.group}?limit=200&cursor={cursor}").document
            yield from page["results"]
            cursor = page["next"]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Starts the consumers; afterwards all have ended."""
        self._consumers = [self._consumer(number) for number in range(CONSUMERS)]
        try:
            for consumer in self._consumers:
                consumer.start()
            yield
        finally:
            for consumer in self._consumers:
                consumer.kill()

    def _consumer(self, number: int) -> Child:
        name = f"consumer-{number}-{secrets.token_hex(2)}"
        diary = str(self.folder / f"{name}.diary")
        life = [diary, self.topic, self.group, API_KEY, str(INVISIBLE_SECONDS), *self.broker.urls]
        command = [sys.executable, "-m", "tests.delivery.mortal_consumer", *life]
        return ForkedChild(name, command, self.broker.environment, self.folder / f"{name}.log", ROOT)
