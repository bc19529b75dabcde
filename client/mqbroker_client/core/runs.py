"""What a run of a consumer is given, and what ends it: for threads and for tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

from mqbroker_client.core import errors
from mqbroker_client.core.calls import Call
from mqbroker_client.core.calls import consumer as calls
from mqbroker_client.core.results import Received

#: The default of the broker's MAX_RECEIVE_MESSAGES.
MOST_RECEIVED = 32

MAY_NOT_READ = "the API key may not read the consumer group: give ordered=True or ordered=False"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How a consumer runs.

    `ordered`: whether its group is; None: the broker is asked, for which the API key needs the scope `manage`.
    `stop_seconds`: what a stop gives the handlers that run; what still runs then is handed out again later.
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
        """How many messages to receive now; none while one is in hand that is to be handled alone.

        A receive of an ordered group is for one message: what follows a message that fails, in the same receive, could
        neither be handled before it nor go on without it. So as many queues are in hand.
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
    """Whether the same request would be refused again. A topic that is not there yet may come."""
    refusals = (errors.BadRequest, errors.Unauthenticated, errors.Forbidden, errors.Refused)
    return isinstance(error, refusals)
