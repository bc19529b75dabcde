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

    The transaction is the open transaction of Django's `atomic()`, or of the session in `in_session`. For all tasks of
    an app: `Celery(..., task_cls="mqbroker_client.contrib.celery:TransactionalTask")`.
    """

    abstract = True
    #: The topic to which calls of the task are sent; a relay consumes the topic.
    topic = TOPIC

    def delay_in_transaction(self, *args: Any, **kwargs: Any) -> "AsyncResult[Any]":
        """Calls the task as `delay` does, but only after the commit of the open transaction, and not after a rollback.

        Raises OutsideTransaction without an open transaction.
        """
        return self.apply_async_in_transaction(args, kwargs)

    def apply_async_in_transaction(self, args: Any = None, kwargs: Any = None, **options: Any) -> "AsyncResult[Any]":
        """Calls the task as `delay_in_transaction` does, with the options of `apply_async` except `producer` and
        `connection`.
        """
        result: AsyncResult[Any] = entrances.in_transaction(self, args, kwargs, options)
        return result


class AlwaysTransactional(TransactionalTask):
    """A task of which every call belongs to a transaction, whichever function of Celery makes the call.

    Calls by a worker itself, such as a retry, the next task of a chain or a link, are published directly.
    """

    abstract = True


entrances.hold(AlwaysTransactional)


def transactional_task(*args: Any, **options: Any) -> Any:
    """Declares a task as Celery's `shared_task` does; each call of the task belongs to the open transaction.

    Calls of a canvas with this task also belong to the transaction. Without an open transaction, calls raise
    OutsideTransaction. `topic="…"` sends the calls to another topic than `celery-tasks`.
    """
    return shared_task(*args, **{"base": AlwaysTransactional, **options})
