"""The body of a refused request, or of an answer that was given up, is free at once, not after a collection."""

from collections.abc import Callable, Iterator

import pytest
from mqbroker_client import Producer

from tests.broker import burdens, characters, stalled
from tests.broker.burdens import MEBIBYTE
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, QUICK, RunningBroker

LARGE = "x" * MEBIBYTE
ROUNDS = 40
# Forty bodies take 40 MiB.
MOST_KEPT_BYTES = 12 * MEBIBYTE


@pytest.fixture
def web(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A web process of its own on the broker's database."""
    folder = tmp_path_factory.mktemp("freed")
    with RunningBroker(folder, broker.database_url, broker.environment["REDIS_URL"], QUICK, tasks=False) as web:
        yield web


def kept_bytes(web: RunningBroker, rounds: Callable[[int], None]) -> int:
    """How much larger the web process is after forty rounds than after the first ten, which warm it."""
    rounds(10)
    before = burdens.memory_of(web)
    rounds(ROUNDS)
    burdens.wait_for_rest(web)
    after = burdens.memory_of(web)
    return max(after[pid] - size for pid, size in before.items())


def test_the_bodies_of_refused_operations_of_a_bulk_are_free_at_once(web: RunningBroker) -> None:
    operations = [{"op": "send", "topic": "no topic/", "body": LARGE}]

    def refused(rounds: int) -> None:
        for _ in range(rounds):
            answer = web.wire().post("/v1/bulk", {"operations": operations})
            assert answer.document["results"][0]["code"] == "topic_illegal"

    assert kept_bytes(web, refused) < MOST_KEPT_BYTES


def test_an_answer_that_its_caller_gives_up_is_free_at_once(web: RunningBroker) -> None:
    orders = characters.name("orders")
    message_id = Producer(web.client(), characters.name("order-service")).send(orders, LARGE.encode()).message_id
    request = stalled.get(f"/v1/messages/{message_id}", API_KEY)

    def given_up(rounds: int) -> None:
        for _ in range(rounds):
            with stalled.stalled(web.url, request, 1) as [socket]:
                eventually(lambda: socket.recv(1))

    assert kept_bytes(web, given_up) < MOST_KEPT_BYTES
