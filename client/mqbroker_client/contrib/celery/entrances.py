"""Wraps Celery's functions that start a task, so that calls belong to the transaction: Celery has no hook for this.

Each publish goes through `Celery.send_task`. Functions that start several tasks, and functions that run tasks at once
with `task_always_eager`, are wrapped as a whole, so that no part of a canvas starts without the others.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial, wraps
from typing import Any

from celery import Celery, Task, chord, group
from celery.canvas import Signature, _chain
from celery.result import EagerResult, GroupResult, denied_join_result
from celery.states import FAILURE, PENDING, SUCCESS
from celery.utils import uuid

from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.contrib.celery import transactions
from mqbroker_client.contrib.celery.calls import Taker
from mqbroker_client.contrib.celery.carried import FOLLOWING, in_call, task_of

#: Marks calls by a worker that continue an earlier call: these calls are published directly.
OF_A_WORKER = object()

# While a canvas is called: the task to whose transaction all calls of the canvas belong, or OF_A_WORKER.
_whole: ContextVar[Any] = ContextVar("whole", default=None)
# Celery's original functions, by class and name.
_originals: dict[tuple[Any, str], Any] = {}


def _staged(task: str, topic: str, publish: Callable[[Taker], Any]) -> Any:
    """Sends the call that Celery would publish as a message of the transaction. Returns Celery's own result."""
    taker = Taker()
    # Otherwise Celery would now subscribe to the result at the result backend, which may be away. A caller that waits
    # for the result subscribes later.
    with denied_join_result():
        result = publish(taker)
    if taker.call is None:
        raise RuntimeError(f"Celery published nothing for the task {task}")
    transactions.stage(topic, taker.call)
    return result


def in_transaction(task: Any, args: Any, kwargs: Any, options: dict[str, Any]) -> Any:
    """Calls this task with the open transaction. Raises OutsideTransaction."""
    apply_async = _originals[Task, "apply_async"]
    if task.app.conf.task_always_eager:
        return _behind_the_commit(task, partial(apply_async, task, args, kwargs, **options), options.get("task_id"))
    return _staged(task.name, task.topic, lambda taker: apply_async(task, args, kwargs, producer=taker, **options))


def hold(kind: type[Any]) -> None:
    """Wraps all functions that start a task of this kind, so that calls belong to the open transaction.

    Must be called once.
    """
    _replace(Celery, "send_task", partial(_send_task, kind))
    _replace(Task, "apply_async", partial(_apply_async, kind))
    for canvas in (_chain, group, chord):
        _replace(canvas, "apply_async", partial(_apply_canvas, kind))
    _replace(Signature, "election", partial(_elect, kind))


def _replace(owner: Any, name: str, instead: Callable[..., Any]) -> None:
    original = _originals[owner, name] = getattr(owner, name)

    @wraps(original)
    def entrance(self: Any, *args: Any, **kwargs: Any) -> Any:
        return instead(original, self, *args, **kwargs)

    # Without this line Celery would apply task annotations to the wrapped function.
    del entrance.__wrapped__
    setattr(owner, name, entrance)


def _send_task(
    kind: type[Any],
    original: Any,
    app: Celery,
    name: str,
    args: Any = None,
    kwargs: Any = None,
    *more: Any,
    **options: Any,
) -> Any:
    options |= zip(_options_of(original), more, strict=False)
    publish = partial(original, app, name, args, kwargs)
    # With a Taker as producer, the caller of this function sends the call with its transaction, so nothing is decided
    # here.
    if isinstance(options.get("producer"), Taker):
        return publish(**options)
    task = _task(kind, app, options, in_call(name, args, kwargs, options))
    if task is None:
        return publish(**options)
    own = {**options, "connection": None, "publisher": None}
    return _staged(name, task.topic, lambda taker: publish(**{**own, "producer": taker}))


@cache
def _options_of(send_task: Any) -> tuple[str, ...]:
    """The names of the parameters that follow app, name, args and kwargs, in the order of the function's signature."""
    return tuple(inspect.signature(send_task).parameters)[4:]


def _apply_async(
    kind: type[Any], original: Any, task: Any, args: Any = None, kwargs: Any = None, *more: Any, **options: Any
) -> Any:
    run = partial(original, task, args, kwargs, *more, **options)
    if not task.app.conf.task_always_eager or _whole.get() is not None:
        return run()
    held = _task(kind, task.app, options, in_call(task.name, args, kwargs, options))
    return run() if held is None else _behind_the_commit(held, run, options.get("task_id"))


def _apply_canvas(kind: type[Any], original: Any, canvas: Signature, *args: Any, **options: Any) -> Any:
    app, fields = canvas.app, {**canvas.options, **options}
    run = partial(original, canvas, *args, **options)
    if _whole.get() is not None:
        return run()
    if _is_of_a_worker(app, fields):
        with _as_a_whole(OF_A_WORKER):
            return run()
    held = task_of(app, kind, canvas, *(fields.get(key) for key in FOLLOWING))
    if held is None:
        return run()
    if app.conf.task_always_eager:
        return _behind_the_commit(held, run, fields.get("task_id"))
    if isinstance(canvas, chord) and not fields.get("root_id"):
        # When the chord's header is done, this root id shows a worker that the chord's body was called before.
        run = partial(run, root_id=uuid())
    with _as_a_whole(held):
        return run()


def _elect(kind: type[Any], original: Any, signature: Signature) -> Any:
    if (held := task_of(signature.app, kind, signature)) is not None:
        raise OutsideTransaction(
            f"an election of the task {held.name} is broadcast to workers at once, and no rollback takes it back: "
            "call delay or apply_async, or elect a task that is not transactional"
        )
    return original(signature)


def _task(kind: type[Any], app: Celery, options: Any, called: Iterator[str]) -> Any:
    """The task to whose topic the call is sent; None when Celery publishes the call at once."""
    whole = _whole.get()
    if whole is not None:
        return None if whole is OF_A_WORKER else whole
    found = task_of(app, kind, *called)
    return None if found is None or _is_of_a_worker(app, options) else found


def _is_of_a_worker(app: Celery, options: Any) -> bool:
    """Whether a worker continues an earlier call: a retry, the next task of a chain, a link, a replacement."""
    if not options.get("root_id"):
        return False
    current = app.current_worker_task
    if current is not None and not current.request.is_eager:
        return True
    # None: the worker's main process, after a task was lost. Otherwise: a task that runs in the program's thread, by
    # `apply` or after the commit; its calls within a transaction are calls of the program.
    return (current is None or bool(app.conf.task_always_eager)) and not transactions.is_open()


@contextmanager
def _as_a_whole(task: Any) -> Iterator[None]:
    token = _whole.set(task)
    try:
        yield
    finally:
        _whole.reset(token)


def _behind_the_commit(task: Any, run: Callable[[], Any], task_id: str | None) -> Any:
    """Runs a task after the commit that `task_always_eager` would run at once; until then its result is PENDING."""
    result: Any = EagerResult(task_id or uuid(), None, PENDING, name=task.name)

    def fill() -> None:
        found = run()
        if isinstance(found, GroupResult):
            state = SUCCESS if found.successful() else FAILURE
            result._state, result._result = state, [one.result for one in found.results or ()]
        elif isinstance(found, EagerResult):
            result._state, result._result, result._traceback = found.state, found.result, found.traceback

    transactions.at_commit(task.name, fill)
    return result
