"""Tasks whose calls belong to a database transaction: both happen, or neither."""

from typing import TYPE_CHECKING, Any

from celery import Task, shared_task

from mqbroker_client.contrib.celery import entrances

if TYPE_CHECKING:
    from celery.result import AsyncResult

#: The topic of calls, unless a task has another.
TOPIC = "celery-tasks"


class TransactionalTask(Task):  # type: ignore[type-arg]  # Celery's own class takes no parameters when it runs
    """A task that can be called within a transaction: `delay_in_transaction`, `apply_async_in_transaction`.

    The transaction is that of Django's `atomic()`, or of the session of `in_session`. For all tasks of an app:
    `Celery(..., task_cls="mqbroker_client.contrib.celery:TransactionalTask")`.
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
        result: AsyncResult[Any] = entrances.in_transaction(self, args, kwargs, options)
        return result


class AlwaysTransactional(TransactionalTask):
    """A task that is started by transactions alone, however it is called.

    What a worker calls by itself, as a retry, the next of a chain or a link, was called before, and is published.
    """

    abstract = True


entrances.hold(AlwaysTransactional)


def transactional_task(*args: Any, **options: Any) -> Any:
    """As Celery's `shared_task`, for a task each of whose calls belongs to the transaction that is open.

    So do the calls of a canvas that has it. Outside of a transaction they raise OutsideTransaction. `topic="…"` sends
    calls to another topic than `celery-tasks`.
    """
    return shared_task(*args, **{"base": AlwaysTransactional, **options})
