"""The settings with which the broker answers a client: the client's own settings, with the broker's decisions.

Missing fields break clients.
"""

from google.protobuf.duration_pb2 import Duration

from delivery import groups
from delivery.retries import policies
from delivery.rows import GroupFacts
from mqbroker.rocketmq.call import Call
from mqbroker.rocketmq.protocol.definition_pb2 import (
    CustomizedBackoff,
    ExponentialBackoff,
    Language,
    RetryPolicy,
    Settings,
)
from scheduling import delays
from scheduling.delays import Delay
from store.process.configuration import setting

# The number of times that a producer tries to send a message, and the seconds between two tries.
SEND_ATTEMPTS = 3
FIRST_PAUSE, LONGEST_PAUSE, PAUSE_FACTOR = 0.01, 1.0, 2.0
RECEIVE_BATCH_SIZE = 32
LONG_POLLING_SECONDS = 20
# The maximum length of a table of retry delays. For a longer table, the last delay of the shortened table stands for
# all later delays.
MAX_BACKOFFS = 64


async def answered(call: Call, given: Settings) -> Settings:
    """The settings that a producer or consumer has to use.

    Raises NoPermission for a consumer group in which the key may not consume, because the settings show the group's
    retries.
    """
    found = Settings()
    found.CopyFrom(given)
    found.metric.on = False
    if given.HasField("publishing"):
        found.publishing.max_body_size = setting("MAX_MESSAGE_BYTES")
        found.publishing.validate_message_type = True
        pauses = _exponential(FIRST_PAUSE, LONGEST_PAUSE, PAUSE_FACTOR)
        found.backoff_policy.CopyFrom(RetryPolicy(max_attempts=SEND_ATTEMPTS, exponential_backoff=pauses))
    elif given.HasField("subscription"):
        name = call.whole(given.subscription.group.name)
        call.caller.require("consume", name)
        group = await groups.find(name)
        found.subscription.fifo = group is not None and group.ordered
        found.subscription.receive_batch_size = min(RECEIVE_BATCH_SIZE, setting("MAX_RECEIVE_MESSAGES"))
        found.subscription.long_polling_timeout.FromSeconds(LONG_POLLING_SECONDS)
        found.backoff_policy.CopyFrom(_of_group(group, given.user_agent.language))
    return found


def _of_group(group: GroupFacts | None, language: Language) -> RetryPolicy:
    """The retry policy of a consumer group; with None, the policy of a group that its first receive will create."""
    limit = None if group is None else group.max_reconsume_times
    retries = int(setting("MAX_RECONSUME_TIMES")) if limit is None else limit
    policy = None if group is None else group.retry_policy
    found = [policies.delay(policy, number) for number in range(min(max(retries, 1), MAX_BACKOFFS))]
    # A policy without retries still gets one delay, because Java fails without a backoff strategy.
    waits = [_seconds(delay) for delay in found if delay is not None] or [0.0]
    attempts = retries + 1 if found[0] is not None else 1
    if language == Language.NODE_JS:
        # The client for Node does not support a table of delays, and uses only whole seconds.
        longest, first = max(1, round(max(waits))), max(1, round(waits[0]))
        return RetryPolicy(max_attempts=attempts, exponential_backoff=_exponential(first, longest, 2.0))
    return RetryPolicy(max_attempts=attempts, customized_backoff=CustomizedBackoff(next=map(_duration, waits)))


def _seconds(delay: Delay) -> float:
    return float(delays.seconds_of_level(delay.level)) if delay.level is not None else float(delay.seconds or 0)


def _exponential(initial: float, longest: float, multiplier: float) -> ExponentialBackoff:
    return ExponentialBackoff(initial=_duration(initial), max=_duration(longest), multiplier=multiplier)


def _duration(seconds: float) -> Duration:
    found = Duration()
    found.FromMicroseconds(round(seconds * 1e6))
    return found
