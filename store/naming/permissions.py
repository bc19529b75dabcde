"""What may be done with a topic: by its permission, and by the time from which it takes messages."""

from datetime import UTC, datetime
from math import ceil
from typing import NamedTuple
from urllib.parse import quote

from store import errors
from store.naming.names import SCHEDULE


class TopicFacts(NamedTuple):
    """A topic as the message path needs it. `version` is that of the map by which it lies in its cell.

    Before `sends_from` it takes no messages.
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
        """Whether the time from which it takes messages has not come, by this process's clock."""
        return self.sends_from is not None and datetime.now(UTC) < self.sends_from


def require_writable(topic: TopicFacts) -> None:
    """Raises TopicClosed for a topic without `w`, SendsForbidden before the time from which it takes messages."""
    if "w" not in topic.permission:
        raise _not_permitted(topic.name, topic.permission, "it takes no messages")
    if topic.forbids_sends:
        assert topic.sends_from is not None
        until = topic.sends_from.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        raise errors.SendsForbidden(
            f"The topic {topic.name} takes no messages until {until}: send again then. Ends and receives go on. "
            f"PUT /v1/topics/{quote(topic.name)} with sends_from sets the time.",
            retry_after_seconds=ceil((topic.sends_from - datetime.now(UTC)).total_seconds()),
        )


def require_readable(name: str, permission: str) -> None:
    """Raises TopicForbidden for the topic of delay levels, whose messages are not visible yet, or without `r`."""
    if name == SCHEDULE:
        raise errors.TopicForbidden(
            f"The topic {name} holds what is not visible yet: receive from the topic a message was sent to. "
            "GET /v1/delay-levels shows what waits."
        )
    if "r" not in permission:
        raise _not_permitted(name, permission, "it is not read")


def _not_permitted(name: str, permission: str, consequence: str) -> errors.TopicClosed:
    return errors.TopicClosed(
        f"The topic {name} has the permission {permission!r}: {consequence}. PUT /v1/topics/{quote(name)} sets it."
    )
