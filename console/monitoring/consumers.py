"""Consumer groups in monitoring: metrics, groups whose messages fail, and queues that wait behind one message."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from console.monitoring.scrape import Metric
from delivery import stats as delivery_stats
from delivery.dead_letters import lists as dead_letter_lists
from delivery.retries import retrying
from delivery.retries.retrying import StandingQueue
from delivery.stats import GroupStats

METRICS = (
    Metric(
        "mqbroker_consumer_lag",
        "Entries of a topic that were not handed to a consumer group yet.",
        lambda reading: [((one.group, one.topic), one.lag) for one in reading.lags],
        labels=("consumer_group", "topic"),
    ),
    Metric(
        "mqbroker_oldest_unacked_seconds",
        "Age of the oldest visible entry of a topic that was not handed to a consumer group, or that the group has "
        "not acked.",
        lambda reading: [((one.group, one.topic), one.oldest_unacked_seconds) for one in reading.lags],
        labels=("consumer_group", "topic"),
    ),
    Metric(
        "mqbroker_consumer_retrying",
        "Messages of a topic that wait for their next attempt in a consumer group; neither lag nor in flight.",
        lambda reading: [((one.group, one.topic), one.messages) for one in reading.retrying],
        labels=("group", "topic"),
    ),
    Metric(
        "mqbroker_oldest_retrying_seconds",
        "Waiting time of the oldest message that waits for its next attempt in a consumer group.",
        lambda reading: [((one.group, one.topic), one.oldest_seconds) for one in reading.retrying],
        labels=("group", "topic"),
    ),
    Metric(
        "mqbroker_deliveries_in_flight",
        "Deliveries of a consumer group that are not acked and whose invisible time is not over.",
        lambda _: [((group,), count) for group, count in delivery_stats.in_flight().items()],
        labels=("consumer_group",),
    ),
    Metric(
        "mqbroker_dead_letters",
        "Dead letters of a consumer group that were not redriven.",
        lambda reading: [((row.group_name,), row.letters) for row in dead_letter_lists.groups(reading.namespace)],
        labels=("consumer_group",),
    ),
)

# Fewer failed messages are no finding, unless one of them has waited for long.
FEW = 3
LONG = timedelta(seconds=30)
# A group fails if more than this share of its messages since the first failure waits for the next attempt.
MOST = 0.5
# A shorter wait of a queue is no finding, because it is over before an operator has looked.
STANDS_SECONDS = 10.0


class Failing(NamedTuple):
    """A consumer group whose messages fail, with the fields of an `Attention` after `urgent`."""

    what: str
    detail: str
    about: Literal["consumer_group"]
    mend: str
    name: str
    since: datetime | None = None


def failing(groups: Sequence[GroupStats], now: datetime, most: int) -> Iterator[Failing]:
    """The groups whose messages fail, and the queues that a failing message delays: at most `most` of each."""
    yield from _most_failing(groups, now)[:most]
    by_id = {one.group.id: one.group for one in groups if one.retrying.messages}
    for queue in retrying.standing(list(by_id.values()), STANDS_SECONDS)[:most]:
        yield _standing(by_id[queue.group_id].name, queue)


def _most_failing(groups: Sequence[GroupStats], now: datetime) -> list[Failing]:
    """The groups in which too many messages wait for a further attempt, the group with the most such messages first."""
    waiting = {one.group.id: one for one in groups if _is_worth_a_look(one, now)}
    since = {group_id: one.retrying.oldest_at for group_id, one in waiting.items()}
    queues = ((one.group.id, (queue.topic_id, queue.queue_id)) for one in waiting.values() for queue in one.queues)
    handed = retrying.handed_since({id_: moment for id_, moment in since.items() if moment is not None}, queues)
    failing = [one for id_, one in waiting.items() if one.retrying.messages > MOST * handed.get(id_, 0)]
    return [_fails(one) for one in sorted(failing, key=lambda one: -one.retrying.messages)]


def _is_worth_a_look(one: GroupStats, now: datetime) -> bool:
    waits = one.retrying
    is_long = waits.oldest_at is not None and now - waits.oldest_at >= LONG
    return waits.messages >= FEW or (waits.messages > 0 and is_long)


def _fails(one: GroupStats) -> Failing:
    waits = one.retrying
    count = f"{waits.messages:,} message{'' if waits.messages == 1 else 's'}"
    at = "" if waits.next_at is None else f", the next at {_moment(waits.next_at)}"
    why = f"{count} failed and wait{'s' if waits.messages == 1 else ''} for the next attempt{at}"
    mend = "see the reasons in the traces of its messages, and what its consumers log"
    name = one.group.name
    return Failing(f"{name} fails on what it is handed", why, "consumer_group", mend, name, waits.oldest_at)


def _standing(group: str, queue: StandingQueue) -> Failing:
    key = f"The key {queue.sharding_key} of queue" if queue.sharding_key else "Queue"
    what = f"{key} {queue.queue_id} of {group} waits behind message {queue.message_id} until {_moment(queue.until)}"
    retries = f"{queue.reconsume_times} time{'' if queue.reconsume_times == 1 else 's'}"
    why = f"the message of {queue.topic} failed {retries}, and its group is ordered"
    mend = f"give the group a shorter retry_policy, or fewer retries: PUT /v1/consumer-groups/{group}"
    return Failing(what, why, "consumer_group", mend, group)


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
