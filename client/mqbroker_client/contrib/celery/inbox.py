"""`exactly_once` for tasks: the task's effect and its row in the inbox are one Django transaction."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from celery import current_task

from mqbroker_client.contrib.celery.calls import uuid_of
from mqbroker_client.contrib.django.inbox import claimed

Given = ParamSpec("Given")
Result = TypeVar("Result")


def exactly_once(work: Callable[Given, Result]) -> Callable[Given, Result | None]:
    """Runs the body of a task once for each task id, in a transaction of MQBROKER's DATABASE.

    Place it below the task's decorator, which needs `acks_late=True`, so that another worker repeats the task of a dead
    worker. A repetition of a finished task returns None. A call as a plain function has no task id, and runs each time.
    """

    @wraps(work)
    def work_once(*args: Given.args, **kwargs: Given.kwargs) -> Result | None:
        task = current_task
        if not task or task.request.called_directly:
            return work(*args, **kwargs)
        with claimed(f"celery {task.name}"[:255], uuid_of(str(task.request.id))) as is_new:
            return work(*args, **kwargs) if is_new else None

    return work_once
