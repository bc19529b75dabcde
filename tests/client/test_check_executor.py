"""Checks that take their time are answered several at once by one poller, and by one listener."""

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from mqbroker_client import CheckExecutor, CheckPoller, HalfMessage, LocalTransactionState, Producer
from mqbroker_client.aio import AsyncBroker, AsyncCheckExecutor, AsyncCheckPoller, AsyncProducer
from mqbroker_client.core.checks import CheckListener

from tests.barrier.places import half
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker

# MQ_CHECKS=200 MQ_CHECK_SECONDS=1 in the environment, on a quiet machine: twenty at once take ten seconds.
CHECKS = int(os.environ.get("MQ_CHECKS", "40"))
CHECK_SECONDS = float(os.environ.get("MQ_CHECK_SECONDS", "0.2"))
AT_ONCE = 20


class Slow:
    """A check of CHECK_SECONDS, which counts how many of it run."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.most = self._running = 0
        self._lock = threading.Lock()

    def __call__(self, asked: HalfMessage) -> LocalTransactionState:
        with self._counted(asked):
            time.sleep(CHECK_SECONDS)
        return LocalTransactionState.COMMIT

    async def awaited(self, asked: HalfMessage) -> LocalTransactionState:
        """The same for tasks."""
        with self._counted(asked):
            await asyncio.sleep(CHECK_SECONDS)
        return LocalTransactionState.COMMIT

    @contextmanager
    def _counted(self, asked: HalfMessage) -> Iterator[None]:
        with self._lock:
            self.asked[str(asked.transaction_id)] += 1
            self._running += 1
            self.most = max(self.most, self._running)
        yield
        with self._lock:
            self._running -= 1


@pytest.fixture
def begun(producer: Producer, orders: str) -> list[str]:
    """Transactions whose checks are due."""
    return [str(producer.begin(orders, b"x", check_immunity_seconds=1).transaction_id) for _ in range(CHECKS)]


def are_committed(broker: RunningBroker, ids: list[str]) -> bool:
    return all(broker.wire().get(f"/v1/transactions/{id_}").document["state"] == "COMMITTED" for id_ in ids)


def test_a_poller_with_an_executor_answers_several_at_once(
    broker: RunningBroker, producer: Producer, begun: list[str]
) -> None:
    check, executor = Slow(), CheckExecutor(threads=AT_ONCE)
    poller = CheckPoller(producer, check, executor=executor)
    began = time.monotonic()
    poller.start()
    eventually(lambda: are_committed(broker, begun), within_seconds=30)
    print(f"{CHECKS} checks of {CHECK_SECONDS:g} s were answered in {time.monotonic() - began:.1f} s")
    poller.stop()
    executor.close()

    assert set(check.asked) == set(begun)
    assert AT_ONCE / 2 <= check.most <= AT_ONCE


def test_a_poller_of_tasks_answers_several_at_once(broker: RunningBroker, producer: Producer, begun: list[str]) -> None:
    check = Slow()

    async def answer() -> None:
        async with AsyncBroker(broker.url, API_KEY) as line:
            executor = AsyncCheckExecutor(tasks=AT_ONCE)
            poller = AsyncCheckPoller(AsyncProducer(line, producer.group), check.awaited, executor=executor)
            poller.start()
            await asyncio.to_thread(eventually, lambda: are_committed(broker, begun), within_seconds=30)
            await poller.stop()
            await executor.close()

    asyncio.run(answer())

    assert set(check.asked) == set(begun)
    assert AT_ONCE / 2 <= check.most <= AT_ONCE


def test_a_stopped_poller_answers_what_has_begun_and_leaves_the_rest(
    broker: RunningBroker, producer: Producer, begun: list[str]
) -> None:
    check, executor = Slow(), CheckExecutor(threads=1)
    poller = CheckPoller(producer, check, executor=executor)
    poller.start()
    eventually(lambda: sum(check.asked.values()) >= 1)
    poller.stop()
    asked = sum(check.asked.values())
    executor.close()

    assert asked < CHECKS
    assert sum(check.asked.values()) == asked
    assert are_committed(broker, list(check.asked))


def test_a_check_that_finds_no_room_waits_for_it() -> None:
    executor, goes_on = CheckExecutor(threads=1, waiting=1), threading.Event()

    def work() -> int:
        goes_on.wait()
        return 1

    begun = [executor.begin(work) for _ in range(2)]
    third = threading.Thread(target=lambda: begun.append(executor.begin(work)))
    third.start()
    third.join(0.2)
    assert (len(begun), third.is_alive()) == (2, True)
    goes_on.set()
    third.join()

    assert [one.result() for one in begun] == [1, 1, 1]
    executor.close()
    with pytest.raises(RuntimeError):
        executor.begin(work)


@pytest.mark.parametrize(("threads", "waiting"), [(0, 1), (1, -1)])
def test_an_executor_without_threads_is_refused(threads: int, waiting: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        CheckExecutor(threads, waiting)
    with pytest.raises(ValueError, match="at least one"):
        AsyncCheckExecutor(threads, waiting)


def test_a_listener_with_an_executor_answers_the_halves_of_a_call_at_once_in_their_order() -> None:
    check, executor = Slow(), CheckExecutor(threads=8)
    listener = CheckListener(check, ["whsec_c2VjcmV0"], executor)
    halves = [half() for _ in range(8)]

    results = listener._results(halves)

    executor.close()
    assert [result["transaction_id"] for result in results] == [str(one.transaction_id) for one in halves]
    assert check.most > 1
