"""What a relay publishes to."""

from typing import Protocol

from mqbroker_client.core.messages import StoredMessage


class TargetAway(Exception):
    """The target takes nothing now: the message is tried again, and waits so long.

    Only for what a target lists as its absence; whatever else a target raises may be the message's own fault.
    """


class TargetRefused(Exception):
    """The target never takes this message, in its own words: it is retried as its group says, then a dead letter."""


class Target(Protocol):
    """A broker of another system. Several threads publish at once."""

    def publish(self, message: StoredMessage) -> None:
        """Returns once the target has confirmed the message.

        Raises TargetAway, or TargetRefused; any other exception counts as a refusal, too.
        """

    def close(self) -> None:
        """Closes its connections; no thread publishes any more."""
