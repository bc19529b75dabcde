"""Targets: the brokers of other systems to which a relay publishes."""

from typing import Protocol

from mqbroker_client.core.messages import StoredMessage


class TargetAway(Exception):
    """The target accepts no message now: the message waits, and is tried again.

    Only for errors that a target lists as its absence; another error may be the message's fault.
    """


class TargetRefused(Exception):
    """The target refuses this message, with its own text: the group retries it, then it is a dead letter."""


class Target(Protocol):
    """A broker of another system. Several threads publish at once."""

    def publish(self, message: StoredMessage) -> None:
        """Returns once the target has confirmed the message.

        Raises TargetAway, or TargetRefused; any other exception counts as a refusal, too.
        """

    def close(self) -> None:
        """Closes its connections; no thread publishes any more."""
