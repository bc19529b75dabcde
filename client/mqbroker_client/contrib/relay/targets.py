"""Targets: the brokers of other systems to which a relay publishes."""

from typing import Protocol

from mqbroker_client.core.messages import StoredMessage


class TargetAway(Exception):
    """The target accepts no message at the moment: the message waits and is tried again.

    Raised only for errors that the target lists as such; other errors may be caused by the message.
    """


class TargetRefused(Exception):
    """The target refuses this message, with its own text.

    The group retries the message, which finally becomes a dead letter.
    """


class Target(Protocol):
    """The broker of another system. Several threads may publish at the same time."""

    def publish(self, message: StoredMessage) -> None:
        """Returns once the target has confirmed the message.

        Raises TargetAway, or TargetRefused; any other exception counts as a refusal, too.
        """

    def close(self) -> None:
        """Closes the connections, after the last publish."""
