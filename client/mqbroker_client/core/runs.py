"""The parameters of a consumer's run and the reasons to end it, for threads and for tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

from mqbroker_client.core import errors
from mqbroker_client.core.calls import Call
from mqbroker_client.core.calls import consumer as calls
from mqbroker_client.core.results import Received

#: The broker's default of MAX_RECEIVE_MESSAGES.
MOST_RECEIVED = 32

MAY_NOT_READ = "the API key may not read the consumer group: give ordered=True or ordered=False"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a consumer's run.

    `ordered`: whether the group is ordered; with None the broker is asked, for which the API key needs the scope
    `manage`. `stop_seconds`: how long running handlers may continue after a stop; messages that are not done by then
    are delivered again later.
    """

    concurrency: int = 8
    ordered: bool | None = None
    filter: str | Mapping[str, str] | None = None
    invisible_seconds: float = 60.0
    wait_seconds: float = 20.0
    stop_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"concurrency is {self.concurrency}: at least one handler has to run")

    def wanted(self, in_hand: int, *, is_alone: bool) -> int:
        """How many messages to receive now; 0 while a delivery is in hand that must be handled alone.

        For an ordered group each receive asks for one message: if a message fails, later messages of the same receive
        could not be handled before it. So no two deliveries in hand come from the same queue.
        """
        if is_alone:
            return 0
        if self.ordered:
            return 1 if in_hand < self.concurrency else 0
        return min(2 * self.concurrency - in_hand, MOST_RECEIVED)

    def receive(self, group: str, topic: str, wanted: int) -> Call[Received]:
        """The call that receives up to `wanted` messages."""
        return calls.receive(
            group,
            topic,
            max_messages=wanted,
            wait_seconds=self.wait_seconds,
            invisible_seconds=self.invisible_seconds,
            filter=self.filter,
        )


def is_final(error: errors.BrokerError) -> bool:
    """Whether the broker would refuse the same request again. A missing topic may still be created."""
    refusals = (errors.BadRequest, errors.Unauthenticated, errors.Forbidden, errors.Refused)
    return isinstance(error, refusals)
