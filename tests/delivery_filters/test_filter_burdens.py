"""A filter of a narrow key, whatever it is and whatever the messages are, takes no other key's time."""

import json
import time
from collections.abc import Iterator, Mapping

import pytest

from tests.broker import characters, databases
from tests.broker.burdens import WITH_A_KEY_BYTES, burden_of, hold
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.delivery_filters.dear import PROPERTIES, Narrow, dear_filter, long_filter, meanwhile
from tests.push.servers import acks

SUBSCRIPTIONS = 4
# One dear value in each message, and many properties.
DEAREST = ("digits and a letter", "many properties")


@pytest.fixture
def narrow(broker: RunningBroker) -> Narrow:
    return Narrow(broker)


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param(properties, id=name, marks=() if name in DEAREST else pytest.mark.long)
        for name, properties in PROPERTIES.items()
    ],
)
def test_dear_filters_leave_the_time_of_other_keys(
    broker: RunningBroker, narrow: Narrow, properties: Mapping[str, str]
) -> None:
    narrow.stock(properties)

    burden = burden_of(broker, lambda: meanwhile(lambda number: _receives_nothing(narrow, dear_filter(number % 8))))

    hold(burden, WITH_A_KEY_BYTES)


def test_filters_of_many_words_are_read_in_turn(broker: RunningBroker, narrow: Narrow) -> None:
    narrow.stock({"a": "-1"})

    burden = burden_of(broker, lambda: meanwhile(lambda number: _receives_nothing(narrow, long_filter(number))))

    hold(burden, WITH_A_KEY_BYTES)


def test_a_receive_whose_consumer_hung_up_ends(broker: RunningBroker, narrow: Narrow) -> None:
    narrow.stock(PROPERTIES["many properties"])

    def hangs_up(number: int) -> None:
        asked = narrow.asks(dear_filter(number % 8), wait_seconds=20)
        time.sleep(0.05)
        asked.connection.close()

    hold(burden_of(broker, lambda: meanwhile(hangs_up)), WITH_A_KEY_BYTES)


def _receives_nothing(narrow: Narrow, wanted: Mapping[str, str]) -> None:
    assert narrow.asks(wanted, wait_seconds=0.5).answer().document == {"messages": []}


@pytest.fixture(scope="module")
def alone(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A web process without workers: it pushes by itself."""
    with databases.copied(prepared) as database_url:
        running = RunningBroker(tmp_path_factory.mktemp("alone"), database_url, "redis://127.0.0.1:1/0", tasks=False)
        with running:
            yield running


@pytest.mark.parametrize("name", [DEAREST[0], pytest.param(DEAREST[1], marks=pytest.mark.long)])
def test_dear_filters_of_subscriptions_leave_the_time_of_other_keys(alone: RunningBroker, name: str) -> None:
    narrow = Narrow(alone)
    narrow.stock(PROPERTIES[name])

    def pushes() -> None:
        with ProducerEndpoint() as server:
            server.replies(acks())
            names = [characters.name("push") for _ in range(SUBSCRIPTIONS)]
            for number, one in enumerate(names):
                asked: Document = {"group": f"{narrow.topic}-{one}", "topic": narrow.topic, "url": server.url}
                asked |= {"filter": dear_filter(number)}
                assert alone.wire().call("PUT", f"/v1/subscriptions/{one}", json.dumps(asked).encode()).status == 201
            wanted = {"topic": narrow.topic, "body": "wanted", "properties": {"a": "-1000"}}
            assert narrow.wire.post("/v1/messages", wanted).status == 201
            eventually(lambda: len(server.asked) >= SUBSCRIPTIONS, within_seconds=60)

    hold(burden_of(alone, pushes), WITH_A_KEY_BYTES)
