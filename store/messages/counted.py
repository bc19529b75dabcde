"""The meaning of an entry's count: the retries of a consumer group, or the checks of a discarded half message."""

from typing import NamedTuple

from store.naming import names


class Counted(NamedTuple):
    """The number of retries before an entry, and for a discarded half message the number of checks."""

    reconsume_times: int
    check_times: int | None


def of(topic: str, count: int) -> Counted:
    """Retries and checks, computed from the count of an entry in this topic."""
    return Counted(0, count) if topic == names.DISCARDED else Counted(count, None)
