"""What an operator has changed holds in every web process from the answer on."""

import signal
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from store.notices import notifier
from store.notices.caches import LONGEST_CACHED_SECONDS
from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.control.operators import Operator
from tests.store.keeper import Keeper


@pytest.fixture
def shop() -> str:
    """A producer group."""
    return characters.name("shop")


@pytest.fixture
def others(broker: RunningBroker, operator: Operator) -> list[Operator]:
    """The operator at each web process, the one that changes things last."""
    here = [other for other in broker.urls if other == operator.url]
    return [Operator(url, operator.api_key) for url in [*(url for url in broker.urls if url not in here), *here]]


@pytest.fixture
def stopped(broker: RunningBroker) -> Iterator[None]:
    """The second web process answers nothing meanwhile."""
    broker.webs[1].send_to_group(signal.SIGSTOP)
    yield
    broker.webs[1].send_to_group(signal.SIGCONT)


def statuses(callers: list[Operator], path: str, **fields: object) -> list[int]:
    """The status of one call at each process."""
    return [caller.make(path, **fields).status for caller in callers]


def test_a_group_that_rejects_transactions_begins_none_at_any_process(
    operator: Operator, others: list[Operator], shop: str, orders: str
) -> None:
    half: Document = {"producer_group": shop, "topic": orders, "body": "order"}
    assert statuses(others, "/v1/transactions", **half) == [201, 201]

    operator.put(f"/v1/producer-groups/{shop}", reject_transaction_message=True)
    assert statuses(others, "/v1/transactions", **half) == [403, 403]

    operator.put(f"/v1/producer-groups/{shop}", reject_transaction_message=False)
    assert statuses(others, "/v1/transactions", **half) == [201, 201]


def test_a_limit_of_undecided_transactions_holds_at_every_process(
    operator: Operator, others: list[Operator], shop: str, orders: str
) -> None:
    half: Document = {"producer_group": shop, "topic": orders, "body": "order"}
    assert statuses(others, "/v1/transactions", **half) == [201, 201]

    operator.put(f"/v1/producer-groups/{shop}", max_undecided=2)
    assert statuses(others, "/v1/transactions", **half) == [429, 429]

    operator.put(f"/v1/producer-groups/{shop}", max_undecided=None)
    assert statuses(others, "/v1/transactions", **half) == [201, 201]


def test_a_permission_of_a_topic_holds_at_every_process(
    operator: Operator, others: list[Operator], orders: str
) -> None:
    assert statuses(others, "/v1/messages", topic=orders, body="order") == [201, 201]

    operator.put(f"/v1/topics/{orders}", permission="r")
    assert statuses(others, "/v1/messages", topic=orders, body="order") == [403, 403]

    operator.put(f"/v1/topics/{orders}", permission="w")
    path = f"/v1/topics/{orders}/queues/0/messages"
    assert [caller.get(path).status for caller in others] == [403, 403]
    assert statuses(others, "/v1/messages", topic=orders, body="order") == [201, 201]


def test_queues_that_a_topic_was_given_are_there_at_every_process(
    operator: Operator, others: list[Operator], orders: str
) -> None:
    assert statuses(others, "/v1/messages", topic=orders, body="order") == [201, 201]

    operator.put(f"/v1/topics/{orders}", queues=8)

    assert statuses(others, "/v1/messages", topic=orders, body="order", queue_id=7) == [201, 201]
    assert [caller.get(f"/v1/topics/{orders}/queues/7/messages").status for caller in others] == [200, 200]


def test_a_deleted_topic_takes_no_message_with_it_that_is_sent_later(
    operator: Operator, others: list[Operator], orders: str
) -> None:
    assert statuses(others, "/v1/messages", topic=orders, body="before") == [201, 201]

    operator.delete(f"/v1/topics/{orders}")
    assert statuses(others, "/v1/messages", topic=orders, body="after", queue_id=0) == [201, 201]

    page = others[0].get(f"/v1/topics/{orders}/queues/0/messages").document
    assert [entry["message"]["body"] for entry in page["messages"]] == ["after", "after"]


def test_scopes_of_a_key_and_its_end_hold_at_every_process(
    operator: Operator, broker: RunningBroker, orders: str
) -> None:
    name = characters.name("holder")
    key = operator.make("/v1/api-keys", name=name, scopes=["produce:*"]).document["key"]
    holders = [Operator(url, key) for url in broker.urls]
    assert statuses(holders, "/v1/messages", topic=orders, body="order") == [201, 201]

    operator.put(f"/v1/api-keys/{name}", scopes=["consume:*"])
    assert statuses(holders, "/v1/messages", topic=orders, body="order") == [403, 403]

    operator.put(f"/v1/api-keys/{name}", scopes=["produce:*"])
    assert statuses(holders, "/v1/messages", topic=orders, body="order") == [201, 201]

    operator.delete(f"/v1/api-keys/{name}")
    assert statuses(holders, "/v1/messages", topic=orders, body="order") == [401, 401]


@pytest.mark.usefixtures("stopped")
def test_a_process_that_confirms_nothing_does_not_keep_a_change_from_its_answer(
    operator: Operator, orders: str
) -> None:
    assert operator.put(f"/v1/topics/{orders}").status == 201

    assert operator.put(f"/v1/topics/{orders}", permission="r").status == 200

    assert operator.make("/v1/messages", topic=orders, body="order").problem["code"] == "topic_forbidden"


def test_a_worker_that_publishes_is_not_waited_for(operator: Operator, broker: RunningBroker, orders: str) -> None:
    """It sends notices of new entries and drops no cache. A process that has just begun to listen waits, too."""
    assert operator.put(f"/v1/topics/{orders}").status == 201

    async def publish() -> None:
        notifier.notify(Counter({1: 1}))

    def seconds_of_a_change() -> float:
        worker.do(publish())
        began = time.monotonic()
        assert operator.put(f"/v1/topics/{orders}", permission="r").status == 200
        return time.monotonic() - began

    with Keeper(broker.database_url) as worker:
        eventually(lambda: seconds_of_a_change() < LONGEST_CACHED_SECONDS, within_seconds=30)
        # Its notice before a change is heard by now.
        assert seconds_of_a_change() < LONGEST_CACHED_SECONDS
