"""What the count of an entry means: a consumer group's retries, but of a discarded message its producer's checks."""

from typing import NamedTuple

from store.naming import names


class Counted(NamedTuple):
    """The retries before an entry, and of a discarded message how often its producer was asked."""

    reconsume_times: int
    check_times: int | None


def of(topic: str, count: int) -> Counted:
    """The meaning of the count that an entry of this topic has."""
    return Counted(0, count) if topic == names.DISCARDED else Counted(count, None)
