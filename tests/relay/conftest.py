"""The targets of the relays' tests, each with what it has received, and a relay as a program."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import amqp
import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka import TopicPartition
from mqbroker_client import Admin, Producer

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from tests.barrier import processes
from tests.broker import characters, forks
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.relay import nats_server, rabbit


@dataclass(frozen=True)
class Received:
    """A message at a target: the key that keeps an order there, where it has one."""

    body: bytes
    headers: dict[str, Any]
    key: str | None = None


class Target(Protocol):
    """A broker of another system, with a place for messages: a queue, a subject or a topic."""

    kind: str
    place: str
    lines: str

    def received(self) -> list[Received]:
        """All messages that are there, in their order, of each key at least."""

    def kill(self) -> None:
        """Kills it, and starts it again; without a process of its own nothing happens."""

    def last_lines(self) -> str:
        """The end of its log."""


class Source:
    """A topic and a group of the broker's, and the lines of a relay of them."""

    def __init__(self, broker: RunningBroker, *, ordered: bool = False) -> None:
        self.topic, self.group = characters.name("orders"), characters.name("relay")
        self.wire = broker.wire()
        client = broker.client()
        Admin(client).create_topic(self.topic)
        Admin(client).create_consumer_group(self.group, ordered=ordered)
        self.producer = Producer(client, self.group)
        self.lines = f'topic = "{self.topic}"\ngroup = "{self.group}"\nordered = {str(ordered).lower()}\n'

    def lag(self) -> int:
        """How many messages the relay has not received."""
        found = self.wire.get(f"/v1/consumer-groups/{self.group}").document.get("lag") or [{"lag": 1}]
        return sum(one["lag"] for one in found)

    def left(self) -> "Left":
        """The lag, for a wait that goes on as long as the lag changes."""
        return Left(self.lag())

    def letters(self) -> list[Document]:
        """The dead letters of the group, up to 200."""
        found: list[Document] = self.wire.get(f"/v1/dead-letters/{self.group}?limit=200").document.get("results") or []
        return found


class Left(int):
    """What is left to do: true when it is nothing."""

    def __bool__(self) -> bool:
        return self == 0


class RabbitTarget:
    """A queue of RabbitMQ."""

    kind = "amqp"

    def __init__(self, server: rabbit.Server) -> None:
        self._server = server
        self.queue = self.place = characters.name("queue")
        self.lines = f'kind = "amqp"\nurl = "{server.url}"\nrouting_key = "{self.queue}"\n'
        with self._connection() as connection:
            connection.channel().queue_declare(self.queue, durable=True, auto_delete=False)

    def received(self) -> list[Received]:
        found = []
        with self._connection() as connection:
            channel: Any = connection.channel()
            while (message := channel.basic_get(self.queue)) is not None:
                found.append(Received(bytes(message.body), message.headers, message.headers.get("sharding_key")))
        # What is not acked is in its place again.
        return found

    def fill(self) -> None:
        """From now on it refuses what comes, until it is emptied."""
        limit = {"x-max-length": 1, "x-overflow": "reject-publish"}
        with self._connection() as connection:
            channel: Any = connection.channel()
            channel.queue_delete(self.queue)
            channel.queue_declare(self.queue, durable=True, auto_delete=False, arguments=limit)
            channel.basic_publish(amqp.Message("fills it"), routing_key=self.queue)

    def empty(self) -> None:
        """It takes messages again."""
        with self._connection() as connection:
            connection.channel().queue_purge(self.queue)

    def kill(self) -> None:
        self._server.kill()
        self._server.start()

    def last_lines(self) -> str:
        return self._server.last_lines()

    def _connection(self) -> amqp.Connection:
        return amqp.Connection(f"127.0.0.1:{self._server.port}", connect_timeout=60, read_timeout=60)


class NatsTarget:
    """A stream of NATS."""

    kind = "nats"

    def __init__(self, server: nats_server.Server) -> None:
        self._server = server
        self.stream = characters.name("stream")
        self.place = f"{self.stream}.relayed"
        self.lines = f'kind = "nats"\nurl = "{server.url}"\nsubject = "{self.place}"\n'
        server.make_stream(self.stream, f"{self.stream}.>")

    def received(self) -> list[Received]:
        found = ((message.data, message.headers or {}) for message in self._server.messages(self.stream))
        return [Received(body, headers, headers.get("sharding_key")) for body, headers in found]

    def fill(self) -> None:
        """From now on it refuses what comes, until it is emptied."""
        self._server.fill(self.stream, self.place)

    def empty(self) -> None:
        """It takes messages again."""
        self._server.empty(self.stream)

    def kill(self) -> None:
        self._server.kill()
        self._server.start()

    def last_lines(self) -> str:
        return self._server.last_lines()


class KafkaTarget:
    """A topic of librdkafka's own mock cluster, which lives in this process: a real Kafka was not run."""

    kind = "kafka"

    def __init__(self, cluster: KafkaProducer) -> None:
        brokers = cluster.list_topics(timeout=10).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        self.topic = self.place = characters.name("kafka")
        self.lines = f'kind = "kafka"\nservers = "{self.servers}"\ntopic = "{self.topic}"\n'

    def received(self) -> list[Received]:
        settings = {"bootstrap.servers": self.servers, "group.id": "all", "enable.partition.eof": True}
        with closing(KafkaConsumer({**settings, "auto.offset.reset": "earliest"})) as consumer:
            partitions = consumer.list_topics(self.topic, timeout=10).topics[self.topic].partitions
            consumer.assign([TopicPartition(self.topic, number, 0) for number in partitions])
            found, ends = [], 0
            while ends < len(partitions):
                message = consumer.poll(10)
                assert message is not None
                if message.error():
                    ends += 1
                    continue
                headers = {name: text(value) for name, value in dict(message.headers() or ()).items()}
                found.append(Received(bytes(message.value() or b""), headers, text(message.key())))
            return found

    def kill(self) -> None:
        """Its brokers live in this process."""

    def last_lines(self) -> str:
        return "none: its brokers live in this process"


def text(given: Any) -> Any:
    """Bytes of Kafka as a text."""
    return given.decode() if isinstance(given, bytes) else given


# It takes the memory of several brokers.
RABBIT = pytest.param("rabbit", marks=pytest.mark.heavy)


@pytest.fixture(scope="package", params=[RABBIT, "nats", "kafka"])
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Target]]:
    """What makes targets, of one kind after the other."""
    folder = tmp_path_factory.mktemp(request.param) / "server"
    if request.param == "rabbit":
        with rabbit.running(folder) as server:
            yield lambda: RabbitTarget(server)
    elif request.param == "nats":
        with nats_server.running(folder) as server_of_nats:
            yield lambda: NatsTarget(server_of_nats)
    else:
        cluster = KafkaProducer({"test.mock.num.brokers": 3, "bootstrap.servers": "none"})
        yield lambda: KafkaTarget(cluster)


@pytest.fixture
def target(system: Callable[[], Target]) -> Target:
    """A target of a test's own."""
    return system()


def relay(broker: RunningBroker, folder: Path, lines: str) -> forks.ForkedChild:
    """A relay as a program, by a file of these lines."""
    file = folder / "relay.toml"
    file.write_text(lines)
    environment = processes.environment() | {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY}
    words = [sys.executable, "-m", "mqbroker_client.contrib.relay", str(file)]
    return forks.ForkedChild("relay", words, environment, folder / "relay.log", ROOT, stop_seconds=40)


@contextmanager
def explained(source: Source, program: Child, target: Target) -> Iterator[None]:
    """Has a failure of the block say what the broker, the relay and the target see."""
    try:
        yield
    except AssertionError as failure:
        group = f"/v1/consumer-groups/{source.group}"
        looks: dict[str, Callable[[], object]] = {
            "the group": lambda: source.wire.get(group).document,
            "dead letters": source.letters,
            "the relay": lambda: "runs" if program.is_running() else program.exit_status,
            "the relay's log": program.last_lines,
            "the target has": lambda: len({one.body for one in target.received()}),
            "the target's log": target.last_lines,
        }
        for name, look in looks.items():
            failure.add_note(f"{name}: {_seen(look)}")
        raise


def _seen(look: Callable[[], object]) -> object:
    try:
        return look()
    except Exception as problem:  # noqa: BLE001 -- whatever one look raises, the other looks are told, too
        return repr(problem)
