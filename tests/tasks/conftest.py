"""The characters of the tests of Celery's tasks: a shop with sessions, a Celery app on a broker of its own, a relay."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import redis
import sqlalchemy as sa
from celery import Celery
from mqbroker_client import Consumer, Producer
from mqbroker_client.contrib.celery import Relay, in_session
from mqbroker_client.contrib.celery.tasks import AlwaysTransactional
from mqbroker_client.contrib.sqlalchemy import Outbox
from sqlalchemy.orm import Session, sessionmaker

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker

Found = TypeVar("Found")

PRIORITIES = ("", *(f"\x06\x16{step}" for step in (3, 6, 9)))


@dataclass
class Shop:
    """A program whose transactions call tasks."""

    broker: RunningBroker
    celery_url: str
    sessions: "sessionmaker[Session]"
    outbox: Outbox
    topic: str = field(default_factory=lambda: characters.name("celery"))
    group: str = field(default_factory=lambda: characters.name("relay"))
    queue: str = field(default_factory=lambda: characters.name("queue"))

    def __post_init__(self) -> None:
        self.session: Session
        self.app = self.app_at(self.celery_url)
        self.task = self.app.task(base=AlwaysTransactional, name="shop.mail", topic=self.topic, shared=False)(nothing)
        # The same by itself.
        self.plain = self.app.task(name="shop.mail.plain", shared=False)(nothing)

    def app_at(self, url: str, **options: Any) -> Any:
        """A Celery app with this broker, in which tasks go to the shop's queue."""
        app = Celery("shop", broker=url, set_as_current=False, **options)
        app.conf.task_default_queue = self.queue
        return app

    def calls(self, work: Callable[[], Found], *, commit: bool = True) -> Found:
        """Does a work in a transaction, that of `session` meanwhile."""
        with self.sessions() as self.session, in_session(self.outbox, session := self.session):
            session.execute(sa.text("INSERT INTO sold DEFAULT VALUES"))
            found = work()
            if commit:
                session.commit()
            else:
                session.rollback()
            return found

    @contextmanager
    def relaying(self, app: Any = None) -> Iterator[None]:
        """A relay in this process, by this app or the shop's own."""
        stop = threading.Event()
        relay = Relay(app or self.app, Consumer(self.broker.client(), self.group), self.topic)
        thread = threading.Thread(target=relay.run, kwargs={"stop": stop})
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def published(self, count: int, queue: str | None = None) -> list[dict[str, Any]]:
        """So many messages of a queue of Celery's broker, the first published first, and those that follow them."""
        with redis.Redis.from_url(self.celery_url) as server:
            # In Redis a queue has a list for each step of priority.
            lists = [(queue or self.queue) + step for step in PRIORITIES]
            eventually(lambda: sum(map(server.llen, lists)) >= count)
            return [json.loads(text) for name in lists for text in reversed(server.lrange(name, 0, -1))]


def nothing(*_: object, **__: object) -> None:
    """The body of a task."""


def comparable(message: dict[str, Any]) -> dict[str, Any]:
    """A message of Celery's broker without what differs from call to call."""
    body = message["body"] if message["headers"].get("compression") else base64.b64decode(message["body"])
    headers = {name: value for name, value in message["headers"].items() if name not in ("id", "root_id", "task")}
    # What is left of the time until `expires`, which a header has.
    of_call = ("correlation_id", "delivery_tag", "reply_to", "expiration")
    properties = {name: value for name, value in message["properties"].items() if name not in of_call}
    kept = {name: value for name, value in message.items() if name not in ("body", "headers", "properties")}
    return {**kept, "body": body, "headers": headers, "properties": properties}


@pytest.fixture
def shop(broker: RunningBroker, tmp_path: Path) -> Iterator[Shop]:
    """A shop on SQLite. Celery's tasks lie in another database of the server than those of the tests' broker."""
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    outbox, sessions = Outbox(Producer(broker.client(), characters.name("shop")), engine), sessionmaker(engine)
    outbox.listen(sessions)
    outbox.barrier.create_table()
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE sold (id integer PRIMARY KEY)"))
    yield Shop(broker, broker.environment["REDIS_URL"].rpartition("/")[0] + "/7", sessions, outbox)
    engine.dispose()
