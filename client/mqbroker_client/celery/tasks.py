"""Tasks whose calls belong to a database transaction: both happen, or neither."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from celery import Task, shared_task
from celery.result import AsyncResult, denied_join_result

from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.celery.calls import Call, Taker
from mqbroker_client.messages import Message

if TYPE_CHECKING:
    from mqbroker_client.sqlalchemy.outbox import AnySession, Outbox

#: The topic of calls, unless a task has another.
TOPIC = "celery-tasks"

_session: ContextVar["tuple[Outbox, AnySession] | None"] = ContextVar("session", default=None)


class TransactionalTask(Task):  # type: ignore[type-arg]  # Celery's own class takes no parameters when it runs
    """A task that can be called within a transaction: `delay_in_transaction`, `apply_async_in_transaction`.

    The transaction is that of Django's `atomic()`, or of the session of `in_session`. For all tasks of an app:
    `Celery(..., task_cls="mqbroker_client.celery:TransactionalTask")`.
    """

    abstract = True
    #: Where its calls are sent to; a relay consumes it.
    topic = TOPIC

    def delay_in_transaction(self, *args: Any, **kwargs: Any) -> "AsyncResult[Any]":
        """As `delay`, once the transaction that is open has committed, and not if it is rolled back.

        Raises OutsideTransaction where none is open.
        """
        return self.apply_async_in_transaction(args, kwargs)

    def apply_async_in_transaction(self, args: Any = None, kwargs: Any = None, **options: Any) -> "AsyncResult[Any]":
        """As `delay_in_transaction`, with the options of `apply_async` but `producer` and `connection`."""
        if self.app.conf.task_always_eager:
            return Task.apply_async(self, args, kwargs, **options)
        taker: Any = Taker()
        # Celery would subscribe to the result where it is kept, which may be away: who waits for it subscribes then.
        with denied_join_result():
            result = Task.apply_async(self, args, kwargs, producer=taker, **options)
        if taker.call is None:
            raise RuntimeError(f"Celery published nothing for the task {self.name}")
        _stage(self.topic, taker.call)
        return result


class AlwaysTransactional(TransactionalTask):
    """A task each of whose calls belongs to a transaction."""

    abstract = True

    def apply_async(  # type: ignore[override]  # all options, as Celery passes them on
        self, args: Any = None, kwargs: Any = None, **options: Any
    ) -> "AsyncResult[Any]":
        """As `apply_async_in_transaction`; a retry of the task, and the next one of a chain, are calls of a worker."""
        if options.get("root_id"):
            return Task.apply_async(self, args, kwargs, **options)
        return self.apply_async_in_transaction(args, kwargs, **options)


def transactional_task(*args: Any, **options: Any) -> Any:
    """As Celery's `shared_task`, for a task whose `delay` and `apply_async` belong to the transaction that is open.

    Outside of one they raise OutsideTransaction. `topic="…"` sends its calls to another topic than `celery-tasks`.
    """
    return shared_task(*args, **{"base": AlwaysTransactional, **options})


@contextmanager
def in_session(outbox: "Outbox", session: "AnySession") -> Iterator[None]:
    """Within the block calls of tasks belong to the transaction of this session of SQLAlchemy."""
    token = _session.set((outbox, session))
    try:
        yield
    finally:
        _session.reset(token)


def _stage(topic: str, call: Call) -> Message:
    """Sends the call with the transaction. Raises OutsideTransaction."""
    fields: dict[str, Any] = {"message_id": call.message_id, "properties": {"task": call.task}}
    if (found := _session.get()) is not None:
        outbox, session = found
        return outbox.send(session, topic, call.encoded(), **fields)
    try:
        from mqbroker_client.django import send
        from mqbroker_client.django.apps import config

        config()
    except (ImportError, LookupError, RuntimeError) as problem:
        raise OutsideTransaction(
            f"the task {call.task} is called in no transaction: call it within in_session(outbox, session) of "
            'SQLAlchemy, or within atomic() of a Django project that has "mqbroker_client.django" in INSTALLED_APPS'
        ) from problem
    try:
        return send(topic, call.encoded(), **fields)
    except OutsideTransaction as problem:
        raise OutsideTransaction(
            f"the task {call.task} is called in no transaction: call it within transaction.atomic(), or call "
            "apply_async of a task that is not transactional, which may be lost"
        ) from problem
