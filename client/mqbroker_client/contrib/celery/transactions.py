"""The open database transaction: stages calls in it, and runs functions after its commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from mqbroker_client.barrier.errors import OutsideTransaction
from mqbroker_client.contrib.celery.calls import Call
from mqbroker_client.core.messages import Message

if TYPE_CHECKING:
    from mqbroker_client.contrib.sqlalchemy.outbox import AnySession, Outbox

_session: ContextVar["tuple[Outbox, AnySession] | None"] = ContextVar("session", default=None)


@contextmanager
def in_session(outbox: "Outbox", session: "AnySession") -> Iterator[None]:
    """Within the block, task calls belong to the transaction of this SQLAlchemy session."""
    token = _session.set((outbox, session))
    try:
        yield
    finally:
        _session.reset(token)


def is_open() -> bool:
    """Whether a call of a task would belong to a transaction."""
    if _session.get() is not None:
        return True
    try:
        return bool(_django().in_atomic_block)
    except OutsideTransaction:
        return False


def stage(topic: str, call: Call) -> Message:
    """Sends the call with the transaction. Raises OutsideTransaction."""
    fields: dict[str, Any] = {"message_id": call.message_id, "properties": {"task": call.task}}
    if (found := _session.get()) is not None:
        outbox, session = found
        return outbox.send(session, topic, call.encoded(), **fields)
    _require_atomic(call.task)
    from mqbroker_client.contrib.django import send

    return send(topic, call.encoded(), **fields)


def at_commit(task: str, run: Callable[[], object]) -> None:
    """Runs this function after the commit of the transaction. Raises OutsideTransaction."""
    if (found := _session.get()) is not None:
        from mqbroker_client.contrib.sqlalchemy import later

        later.at_commit(found[1], partial(_apart, run))
        return
    _require_atomic(task)
    from django.db import transaction

    transaction.on_commit(run, using=_django().alias)


def _apart(run: Callable[[], object]) -> None:
    """Runs the function outside of the session's transaction, as a worker would."""
    token = _session.set(None)
    try:
        run()
    finally:
        _session.reset(token)


def _require_atomic(task: str) -> None:
    try:
        is_atomic = _django().in_atomic_block
    except OutsideTransaction as problem:
        raise OutsideTransaction(
            f"the task {task} is called in no transaction: call it within in_session(outbox, session) of "
            "SQLAlchemy, or within atomic() of a Django project whose INSTALLED_APPS name "
            '"mqbroker_client.contrib.django"'
        ) from problem
    if not is_atomic:
        raise OutsideTransaction(
            f"the task {task} is called in no transaction: call it within transaction.atomic(), or call "
            "apply_async of a task that is not transactional, which may be lost"
        )


def _django() -> Any:
    """The Django connection to MQBROKER's DATABASE. Raises OutsideTransaction if no project has this setting."""
    try:
        from django.core.exceptions import AppRegistryNotReady, ImproperlyConfigured
    except ImportError as problem:
        raise OutsideTransaction("Django is not installed") from problem
    try:
        from django.db import connections

        from mqbroker_client.contrib.django.apps import config

        return connections[config().options.database]
    except (LookupError, AppRegistryNotReady, ImproperlyConfigured) as problem:
        raise OutsideTransaction(f"there is no project of Django with MQBROKER: {problem}") from problem
