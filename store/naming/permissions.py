"""Permissions of topics: whether a topic may be written and read, and the time before which it takes no messages."""

from datetime import UTC, datetime
from math import ceil
from typing import NamedTuple
from urllib.parse import quote

from store import errors
from store.naming.names import SCHEDULE


class TopicFacts(NamedTuple):
    """A topic as the message path needs it. `version`: the version of the map from which `cell_id` was read.

    Before the time `sends_from` the topic takes no messages.
    """

    id: int
    name: str
    queues: int
    permission: str
    cell_id: int
    version: int
    sends_from: datetime | None = None

    @property
    def forbids_sends(self) -> bool:
        """Whether the topic takes no messages yet, by this process's clock."""
        return self.sends_from is not None and datetime.now(UTC) < self.sends_from


def require_writable(topic: TopicFacts) -> None:
    """Raises TopicClosed for a topic without `w`, SendsForbidden before the time `sends_from`."""
    if "w" not in topic.permission:
        raise _not_permitted(topic.name, topic.permission, "it takes no messages")
    if topic.forbids_sends:
        assert topic.sends_from is not None
        until = topic.sends_from.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        raise errors.SendsForbidden(
            f"The topic {topic.name} takes no messages until {until}: send again then. Ends and receives "
            f"still work. Change the time with sends_from at PUT /v1/topics/{quote(topic.name)}.",
            retry_after_seconds=ceil((topic.sends_from - datetime.now(UTC)).total_seconds()),
        )


def require_readable(name: str, permission: str) -> None:
    """Raises TopicForbidden for a topic without `r`, and for the topic of delayed messages, which are not visible."""
    if name == SCHEDULE:
        raise errors.TopicForbidden(
            f"The topic {name} holds delayed messages, which are not visible yet: receive from the topic to "
            "which the message was sent. GET /v1/delay-levels shows the waiting messages."
        )
    if "r" not in permission:
        raise _not_permitted(name, permission, "it is not read")


def _not_permitted(name: str, permission: str, consequence: str) -> errors.TopicClosed:
    return errors.TopicClosed(
        f"The topic {name} has the permission {permission!r}: {consequence}. PUT /v1/topics/{quote(name)} sets it."
    )
