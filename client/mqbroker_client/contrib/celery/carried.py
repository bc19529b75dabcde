"""Finds the transactional task that a call starts: the called task, or a later task of a canvas."""

from collections.abc import Iterator, Mapping
from typing import Any

from celery import Task

#: Options of a call that start further tasks.
FOLLOWING = ("link", "link_error", "chain", "chord")
# The argument of Celery's own canvas tasks that contains data, not tasks.
_DATA = "it"


def task_of(app: Any, kind: type[Any], *given: object) -> Any:
    """The first task of this kind in names, signatures, or lists of signatures; None without such a task."""
    # Declared tasks are registered when the app is finalized; a direct call of a task finalizes the app.
    tasks = app.tasks if app.autofinalize else app._tasks
    found = (tasks.get(name) for name in names(*given))
    return next((task for task in found if isinstance(task, kind)), None)


def names(*given: object) -> Iterator[str]:
    """The names of all tasks in names, signatures, or lists of signatures."""
    for each in given:
        if isinstance(each, str):
            yield each
        elif isinstance(each, Task):
            yield str(each.name)
        elif isinstance(each, Mapping) and isinstance(each.get("task"), str):
            yield from in_call(each["task"], each.get("args"), each.get("kwargs"), each.get("options"))
        elif isinstance(each, list | tuple):
            yield from names(*(one for one in each if not isinstance(one, str)))


def in_call(name: str, args: Any, kwargs: Any, options: Any) -> Iterator[str]:
    """The names of all tasks that a call starts."""
    yield name
    yield from names(*(signature for key in FOLLOWING if (signature := (options or {}).get(key))))
    # Signatures in the arguments of other tasks are not called now: these tasks call them later, in their own
    # transactions.
    if name.startswith("celery."):
        given = [value for key, value in (kwargs or {}).items() if key != _DATA]
        yield from names(*(one for one in (*(args or ()), *given) if not isinstance(one, str)))
