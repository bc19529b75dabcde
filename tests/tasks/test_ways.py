"""Each way to start a task is held to the transaction: the table of docs/from-celery.md is the test."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import chain, chord, group
from celery.contrib.testing.worker import start_worker
from mqbroker_client import Consumer
from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.contrib.celery.tasks import AlwaysTransactional

from tests.broker.polling import eventually
from tests.broker.tellings import received_until_empty
from tests.docs.pages import page
from tests.tasks.conftest import Shop, nothing

ROW = re.compile(r"^\| `(.+)` \| (in the transaction|runs at once|refused)\b.* \|$", re.MULTILINE)
WAYS = [
    (way.replace("\\|", "|"), fate)
    for way, fate in ROW.findall(page("docs/from-celery.md").section("Each way to start a task").text)
]
IN_THE_TRANSACTION = [way for way, fate in WAYS if fate == "in the transaction"]
#: Where a chord is counted: by the server of results, or by a task that looks again and again.
BACKENDS: dict[str, str] = {"redis": "{redis}", "database": "db+sqlite:///{folder}/results.db"}


@pytest.fixture(params=[*BACKENDS.values()], ids=[*BACKENDS])
def names(shop: Shop, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """What the page calls by name."""
    shop.app.conf.result_backend = request.param.format(redis=shop.celery_url, folder=tmp_path)
    own = {"app": shop.app, "task": shop.task, "plain": shop.plain}
    return own | {"chain": chain, "group": group, "chord": chord}


def in_celery(shop: Shop) -> int:
    """How many calls are in Celery's broker."""
    with redis.Redis.from_url(shop.celery_url) as server:
        return int(server.llen(shop.queue))


def test_the_page_has_a_row_for_each_kind_of_way() -> None:
    assert {fate for _, fate in WAYS} == {"in the transaction", "runs at once", "refused"}
    assert len(IN_THE_TRANSACTION) >= 25


def test_in_a_transaction_a_call_is_published_with_its_commit_alone(shop: Shop, names: dict[str, Any]) -> None:
    consumer = Consumer(shop.broker.client(), "audit")
    for way in IN_THE_TRANSACTION:
        shop.calls(partial(eval, way, names), commit=False)
        assert (in_celery(shop), consumer.receive(shop.topic)) == (0, []), way

        shop.calls(partial(eval, way, names))
        assert in_celery(shop) == 0, way
        committed = received_until_empty(consumer, shop.topic)
        assert committed, way
        consumer.ack(committed)


def test_outside_of_a_transaction_each_way_is_refused(shop: Shop, names: dict[str, Any]) -> None:
    for way in IN_THE_TRANSACTION:
        if "root_id" in way:
            continue  # as a worker's own, which no transaction holds
        try:
            result = eval(way, names)
        except OutsideTransaction as problem:
            result = problem
        assert isinstance(getattr(result, "result", result), OutsideTransaction), way
        assert in_celery(shop) == 0, way


@pytest.mark.parametrize(("way", "fate"), [(way, fate) for way, fate in WAYS if fate != "in the transaction"])
def test_what_is_done_here_or_refused_is_never_published(shop: Shop, way: str, fate: str) -> None:
    names = {"task": shop.task}

    def call() -> None:
        if fate == "refused":
            with pytest.raises(OutsideTransaction, match=r"shop\.mail.*no rollback takes it back.*call delay"):
                eval(way, names)
        else:
            eval(way, names)

    shop.calls(call, commit=False)
    shop.calls(call)
    assert in_celery(shop) == 0
    assert Consumer(shop.broker.client(), "audit").receive(shop.topic) == []


class Worker:
    """Tasks that a worker of this process runs, and what they did."""

    def __init__(self, shop: Shop) -> None:
        self.ran: list[Any] = []
        made = {
            "base": AlwaysTransactional,
            "topic": shop.topic,
            "bind": True,
            "default_retry_delay": 0,
            "shared": False,
        }

        def task(name: str) -> Callable[[Callable[..., Any]], Any]:
            return lambda function: shop.app.task(name=name, **made)(function)

        @task(name="shop.note")
        def note(task: Any, *given: Any) -> str:
            self.ran.append(given[-1] if given else None)
            return "noted"

        @task(name="shop.retried")
        def retried(task: Any) -> str:
            if not task.request.retries:
                raise task.retry(countdown=0)
            return "retried"

        @task(name="shop.replaced")
        def replaced(task: Any) -> None:
            raise task.replace(chain(retried.si(), note.si("replacement")))

        @task(name="shop.fails")
        def fails(task: Any) -> None:
            raise ValueError("it fails")

        @task(name="shop.calls")
        def calls(task: Any) -> None:
            try:
                note.delay("outside")
            except OutsideTransaction:
                self.ran.append("refused")
            shop.calls(lambda: note.delay("of a task"))
            shop.calls(lambda: note.delay("never"), commit=False)

        self.note, self.retried, self.replaced, self.fails, self.calls = note, retried, replaced, fails, calls

    def started(self) -> Iterator[object]:
        """Calls of each kind."""
        yield self.retried.apply_async(link=self.note.si("link"))
        yield self.replaced.delay()
        yield self.fails.apply_async(link_error=self.note.si("link_error"))
        yield chain(self.retried.si(), self.note.si("next")).delay()
        yield chord([self.retried.si(), self.note.si("header")], self.note.si("body")).delay()
        yield chain(
            self.note.si("first"), group(self.note.si("one"), self.note.si("two")), self.note.si("last")
        ).delay()
        yield self.note.chunks([("chunk",)], 1).delay()
        yield self.calls.delay()


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_a_worker_goes_on_with_what_was_committed(shop: Shop, backend: str, tmp_path: Path) -> None:
    shop.app.conf.update(
        result_backend=backend.format(redis=shop.celery_url, folder=tmp_path), result_chord_retry_interval=0.1
    )
    worker = Worker(shop)
    wanted = ["link", "replacement", "link_error", "next", "header", "body", "first", "one", "two", "last", "chunk"]
    with shop.relaying(), start_worker(shop.app, pool="solo", perform_ping_check=False, shutdown_timeout=60):
        shop.calls(lambda: list(worker.started()))

        eventually(lambda: sorted(worker.ran) == sorted([*wanted, "refused", "of a task"]) or None, within_seconds=60)


def test_eager_calls_run_at_the_commit_and_not_after_a_rollback(shop: Shop) -> None:
    ran: list[Any] = []
    shop.app.conf.task_always_eager = True
    made: dict[str, Any] = {"base": AlwaysTransactional, "topic": shop.topic, "shared": False}

    def note(*given: Any) -> None:
        ran.append(given)

    task = shop.app.task(name="shop.eager", **made)(note)
    plain = shop.app.task(name="shop.eager.plain", shared=False)(nothing)
    names = {"app": shop.app, "task": task, "plain": plain, "chain": chain, "group": group, "chord": chord}
    for way in (way.replace("shop.mail", "shop.eager") for way in IN_THE_TRANSACTION):
        if "send_task" in way:
            continue  # by name nothing is eager, in Celery either
        shop.calls(partial(eval, way, names), commit=False)
        assert ran == [], way

        if "link_error" in way or "on_error" in way:
            continue  # nothing fails
        result = shop.calls(partial(eval, way, names))
        assert ran, way
        assert result.successful(), way
        ran.clear()
    with pytest.raises(OutsideTransaction):
        task.delay(7)
    assert ran == []


def test_an_eager_call_of_a_savepoint_that_is_rolled_back_never_runs(shop: Shop) -> None:
    ran: list[Any] = []
    shop.app.conf.task_always_eager = True

    def note(given: str) -> None:
        ran.append(given)

    task = shop.app.task(name="shop.eager", base=AlwaysTransactional, topic=shop.topic, shared=False)(note)

    def work() -> None:
        session = shop.session
        with session.begin_nested() as savepoint:
            task.delay("back")
            savepoint.rollback()
        with session.begin_nested():
            task.delay("kept")
        assert ran == []

    shop.calls(work)
    assert ran == ["kept"]
