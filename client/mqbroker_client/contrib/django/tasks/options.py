"""The OPTIONS of a task backend, and the topics of its queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from mqbroker_client.contrib.django.tasks.framework import InvalidTaskBackendError

#: Suffixes of the topics of a queue: for tasks with a priority above 0, of 0, and below 0.
LEVELS = ("_high", "", "_low")


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """Each field is a key of OPTIONS, in capitals."""

    #: The database in whose transactions tasks are enqueued; by default the one of MQBROKER's databases that has an
    #: open transaction.
    database: str | None = None
    #: Outside of a transaction, a task is sent at once, in a transaction of its own; or OutsideTransaction is raised.
    outside: Literal["send", "refuse"] = "send"
    #: Whether a task runs in a transaction of its database, together with the row of its result: it takes effect once.
    #: Otherwise a task whose worker dies runs again, and what it has done by then remains.
    atomic: bool = True
    #: How often a task that fails is run again before its message is a dead letter.
    max_retries: int = 16
    #: The topic of a queue is this text and the name of the queue, with the suffix of the task's priority.
    topic_prefix: str = "tasks-"

    @classmethod
    def read(cls, alias: str, given: Mapping[str, Any]) -> Self:
        """Raises InvalidTaskBackendError for an unknown key or value."""
        known = [field.name.upper() for field in fields(cls)]
        if unknown := [name for name in given if name not in known]:
            raise InvalidTaskBackendError(
                f"OPTIONS of the task backend {alias} has no key {', '.join(unknown)}: its keys are {', '.join(known)}."
            )
        options = cls(**{name.lower(): value for name, value in given.items()})
        if options.outside not in ("send", "refuse"):
            raise InvalidTaskBackendError(
                f'OUTSIDE of the task backend {alias} is "send" or "refuse", not {options.outside!r}.'
            )
        return options

    def topic(self, queue_name: str, priority: int) -> str:
        """The topic of a task."""
        return self.topic_prefix + queue_name + LEVELS[(priority <= 0) + (priority < 0)]

    def topics(self, queue_names: Sequence[str]) -> list[str]:
        """The topics of queues, in the order in which a worker prefers them: first by priority, then by queue."""
        return [self.topic_prefix + name + level for level in LEVELS for name in queue_names]
