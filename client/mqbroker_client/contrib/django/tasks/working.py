"""The worker of tasks: receives from the topics of queues, in the order of preference, and runs the tasks."""

import logging
import queue
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

from django.db import close_old_connections
from django.utils.dateparse import parse_datetime

from mqbroker_client.contrib.django.inbox import claimed
from mqbroker_client.contrib.django.tasks import results
from mqbroker_client.contrib.django.tasks.backend import Backend
from mqbroker_client.contrib.django.tasks.framework import (
    TaskContext,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.handlers import Handler
from mqbroker_client.core.messages import Delivery
from mqbroker_client.core.retries import Retry
from mqbroker_client.core.running import Runner
from mqbroker_client.core.runs import Limits

log = logging.getLogger(__name__)

LAST = float("inf")


@dataclass(frozen=True, slots=True)
class TaskHandler:
    """Runs the task of a delivery, as the handler of a consumer group."""

    group: str
    worker_id: str

    def __call__(self, delivery: Delivery) -> None:
        document = delivery.json()
        row = results.begin(document["database"], _call(document["call"]), self.worker_id)
        if row is None:
            return
        try:
            self._run(row)
        except Exception as error:
            self._fail(delivery, row, error)
            raise

    def _run(self, row: Any) -> None:
        result = results.result_of(row)
        backend = result.task.get_backend()
        task_started.send(type(backend), task_result=result)
        if not isinstance(backend, Backend) or not backend.own.atomic:
            results.succeed(row, _value(result))
        else:
            with claimed(self.group, UUID(row.id), using=row._state.db) as is_new:
                if not is_new:
                    return
                results.succeed(row, _value(result))
        task_finished.send(type(backend), task_result=results.result_of(row))

    def _fail(self, delivery: Delivery, row: Any, error: Exception) -> None:
        most = delivery.message.max_reconsume_times
        try:
            # The error of the task may have broken the database connection.
            close_old_connections()
            results.fail(row, error, is_last=most is not None and delivery.message.reconsume_times >= most)
            if row.status == TaskResultStatus.FAILED:
                result = results.result_of(row)
                task_finished.send(type(result.task.get_backend()), task_result=result)
        except Exception:
            # The caller raises the task's own error, which decides about the retry; this second error is only logged.
            log.exception("the error of task %s was not written", row.id)


class _Ordered:
    """Received deliveries, grouped by topic in the order of the topics. A delivery that must be handled alone comes
    last; an entry None ends the threads.
    """

    def __init__(self) -> None:
        self._items: queue.PriorityQueue[tuple[float, int, Delivery | None]] = queue.PriorityQueue()
        self._numbers = count()
        self.empty = self._items.empty

    def put(self, delivery: Delivery | None, number: float = LAST) -> None:
        self._items.put((number, next(self._numbers), delivery))

    def get(self) -> Delivery | None:
        return self._items.get()[2]


class _TaskLimits(Limits):
    """A task is only received if a thread is free for it: tasks are long, and another worker may be idle."""

    def wanted(self, in_hand: int, *, is_alone: bool) -> int:
        return 0 if is_alone else max(self.concurrency - in_hand, 0)


class TaskRunner(Runner):
    """A run over several topics with a thread that receives for each. A topic is received while all before it are dry.

    Dry: the last receive has found nothing. Then the thread waits in a long poll.
    """

    def __init__(self, consumer: Consumer, topics: Sequence[str], handler: Handler, limits: Limits) -> None:
        super().__init__(consumer, ", ".join(topics), handler, limits)
        self._topics = topics
        self._lines = [consumer.broker.apart() for _ in topics]
        self._dry = [False] * len(topics)
        self._received: Any = _Ordered()

    def _topic_of(self, delivery: Delivery) -> str:
        return delivery.message.topic

    def _room(self, number: int) -> int:
        def may_receive() -> bool:
            return self._stopping.is_set() or (self._hand.wanted() > 0 and all(self._dry[:number]))

        with self._hand.changed:
            self._hand.changed.wait_for(may_receive)
            if self._stopping.is_set():
                return 0
            # Topics without messages are long-polled at the same time, so each asks only for its share of the free
            # threads.
            shares = len(self._topics) if self._dry[number] else 1
            return max(self._hand.wanted() // shares, 1)

    def _receive_once(self, number: int, wanted: int) -> None:
        line = self._lines[number]
        limits = self._limits if self._dry[number] else self._at_once
        receive = limits.receive(self._consumer.group, self._topics[number], wanted)
        try:
            received = line.do(receive, retry=Retry(1, line.retry.seconds))
        except Exception:
            self._take(number, ())
            raise
        self._take(number, received)

    def _take(self, number: int, found: Sequence[Delivery]) -> None:
        with self._hand.changed:
            self._dry[number] = not found
            # A delivery that has to be handled alone waits for all deliveries that came before it.
            is_alone = any(delivery.alone for delivery in self._hand.all())
            for delivery in () if is_alone else found:
                self._hand.take(delivery)
                self._received.put(delivery, LAST if delivery.alone else number)
            self._hand.changed.notify_all()
        if is_alone:
            self._return(found)

    @property
    def _at_once(self) -> Limits:
        return _TaskLimits(concurrency=self._limits.concurrency, wait_seconds=0)


def limits(threads: int, *, invisible_seconds: float, stop_seconds: float) -> Limits:
    """The limits of a worker. Raises ValueError without a thread."""
    return _TaskLimits(
        concurrency=threads, ordered=False, invisible_seconds=invisible_seconds, stop_seconds=stop_seconds
    )


def _value(result: "TaskResult[Any]") -> object:
    """Runs the task."""
    context = [TaskContext(task_result=result)] if result.task.takes_context else []
    return normalize_json(result.task.call(*context, *result.args, **result.kwargs))


def _call(document: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: document[name] and parse_datetime(document[name]) for name in ("run_after", "enqueued_at")}
    return {**document, **times}
