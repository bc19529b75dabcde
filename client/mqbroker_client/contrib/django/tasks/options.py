"""The OPTIONS of a task backend, and the topics of its queues."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from mqbroker_client.contrib.django.options import is_list_of_texts
from mqbroker_client.contrib.django.tasks.framework import InvalidTaskBackendError
from mqbroker_client.core.rules import RECONSUME_TIMES

#: Suffixes of the topics of a queue: for tasks with a priority above 0, of 0, and below 0.
LEVELS = ("_high", "", "_low")


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """Each field is a key of OPTIONS, in capitals."""

    #: The database in whose transactions tasks are enqueued; by default, the database of MQBROKER that has an open
    #: transaction.
    database: str | None = None
    #: Outside of a transaction, a task is sent at once, in a separate transaction; or OutsideTransaction is raised.
    outside: Literal["send", "refuse"] = "send"
    #: Whether a task runs in a transaction of its database, together with the row of its result: the task takes effect
    #: once. Otherwise a task whose worker dies runs again, and the effects of its first run remain.
    atomic: bool = True
    #: How many times a task that fails is run again before its message is a dead letter.
    max_retries: int = 16
    #: The topic of a queue is this text and the name of the queue, with the suffix of the task's priority.
    topic_prefix: str = "tasks-"

    @classmethod
    def read(cls, alias: str, given: Mapping[str, Any]) -> Self:
        """Raises InvalidTaskBackendError for an unknown key, or for each wrong value."""
        if not isinstance(given, Mapping):
            raise InvalidTaskBackendError(f"OPTIONS of the task backend {alias} is a dictionary, not {given!r}.")
        known = [field.name.upper() for field in fields(cls)]
        if unknown := [name for name in given if name not in known]:
            raise InvalidTaskBackendError(
                f"OPTIONS of the task backend {alias} has no key {', '.join(unknown)}: its keys are {', '.join(known)}."
            )
        options = cls(**{name.lower(): value for name, value in given.items()})
        if faults := [*options._faults()]:
            raise InvalidTaskBackendError(f"OPTIONS of the task backend {alias} has wrong values: {'; '.join(faults)}.")
        return options

    def _faults(self) -> Iterator[str]:
        """Each wrong value and a valid one."""
        if not isinstance(self.database, str | None):
            yield f"DATABASE is an alias of DATABASES, not {self.database!r}"
        if self.outside not in ("send", "refuse"):
            yield f'OUTSIDE is "send" or "refuse", not {self.outside!r}'
        if not isinstance(self.atomic, bool):
            yield f"ATOMIC is True or False, not {self.atomic!r}"
        # A bool is an int.
        if type(self.max_retries) is not int or not 0 <= self.max_retries <= RECONSUME_TIMES:
            yield f"MAX_RETRIES is a whole number from 0 to {RECONSUME_TIMES:,}, not {self.max_retries!r}"
        if not isinstance(self.topic_prefix, str):
            yield f"TOPIC_PREFIX is a text, not {self.topic_prefix!r}"

    def topic(self, queue_name: str, priority: int) -> str:
        """The topic of a task."""
        return self.topic_prefix + queue_name + LEVELS[(priority <= 0) + (priority < 0)]

    def topics(self, queue_names: Sequence[str]) -> list[str]:
        """The topics of queues, in the order in which a worker prefers them: first by priority, then by queue."""
        return [self.topic_prefix + name + level for level in LEVELS for name in queue_names]


def queue_names(alias: str, given: object) -> Sequence[str]:
    """The setting QUEUES as a list of names, in its order. Raises InvalidTaskBackendError for anything but a list of
    names.
    """
    if isinstance(given, set | frozenset):
        given = sorted(given)
    if not is_list_of_texts(given):
        raise InvalidTaskBackendError(f"QUEUES of the task backend {alias} is a list of names, not {given!r}.")
    return given  # type: ignore[return-value]  # was checked above to be a list of texts
