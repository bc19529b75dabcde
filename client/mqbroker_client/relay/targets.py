"""What a relay publishes to."""

from typing import Protocol

from mqbroker_client.messages import StoredMessage


class TargetAway(Exception):
    """The target takes nothing now: the message is tried again, and waits so long."""


class TargetRefused(Exception):
    """The target never takes this message, in its own words: it is retried as its group says, then a dead letter."""


class Target(Protocol):
    """A broker of another system. Several threads publish at once."""

    def publish(self, message: StoredMessage) -> None:
        """Returns once the target has confirmed the message. Raises TargetAway or TargetRefused."""

    def close(self) -> None:
        """Closes its connections; no thread publishes any more."""
