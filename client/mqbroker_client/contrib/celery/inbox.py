"""`exactly_once` of a task: its effect and the row of its id in the inbox are one transaction of Django's."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from celery import current_task

from mqbroker_client.contrib.celery.calls import uuid_of
from mqbroker_client.contrib.django.inbox import claimed

Given = ParamSpec("Given")
Result = TypeVar("Result")


def exactly_once(work: Callable[Given, Result]) -> Callable[Given, Result | None]:
    """Has the body of a task run once for each task id, in a transaction of MQBROKER's DATABASE.

    Below the decorator of the task, which is to have `acks_late=True`: a worker that dies leaves the task to another.
    A repetition of a task that is done returns None. A call as a plain function is no task, and runs each time.
    """

    @wraps(work)
    def work_once(*args: Given.args, **kwargs: Given.kwargs) -> Result | None:
        task = current_task
        if not task or task.request.called_directly:
            return work(*args, **kwargs)
        with claimed(f"celery {task.name}"[:255], uuid_of(str(task.request.id))) as is_new:
            return work(*args, **kwargs) if is_new else None

    return work_once
