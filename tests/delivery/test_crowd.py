"""A crowd of consumers that die all the time: every message is done once, none is skipped, none is held for long."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import cells
from tests.broker.characters import name
from tests.broker.running import RunningBroker
from tests.delivery.crowds import INVISIBLE_SECONDS, MortalCrowd
from tests.delivery.diaries import LATE_SECONDS, Diaries, Step

# MQ_CROWD_SECONDS=60 is the long run.
SECONDS = float(os.environ.get("MQ_CROWD_SECONDS", "6"))


@pytest.fixture
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose web process may be killed."""
    with cells.installation(prepared) as database_url:
        broker = RunningBroker(tmp_path_factory.mktemp("broker"), database_url, os.environ["REDIS_URL"], webs=2)
        with broker:
            yield broker


@pytest.mark.chaos
@pytest.mark.parametrize("fair_by", [None, "sharding_key"], ids=["by queue", "by turns"])
def test_eight_consumers_that_are_killed_at_random_finish_every_message_once_and_in_time(
    broker: RunningBroker, orders: str, tmp_path: Path, fair_by: str | None
) -> None:
    crowd = MortalCrowd(broker, orders, name("coupon-service"), tmp_path)
    policy = {"max_reconsume_times": 6, "retry_policy": {"kind": "table", "delay_seconds": [0]}, "fair_by": fair_by}
    broker.client().call("PUT", f"/v1/consumer-groups/{crowd.group}", policy)

    with crowd.at_work():
        crowd.consume_and_die(SECONDS / 2)
        broker.webs[0].kill()
        broker.webs[0].start()
        crowd.consume_and_die(SECONDS / 2)
        diaries = crowd.finish()

    again = sum(step.verb == "took" and step.attempt > 1 for step in diaries.steps)
    print(
        f"{len(crowd.sent)} messages, {crowd.kills} consumers killed, {again} deliveries again, "
        f"{len(diaries.dead)} dead letters, {len(diaries.perhaps_done())} acks without an answer, "
        f"overdue at most {crowd.most_overdue_seconds:.2f} s"
    )
    assert diaries.flaws(crowd.sent, INVISIBLE_SECONDS) == []
    assert crowd.most_overdue_seconds <= LATE_SECONDS
    assert again >= crowd.kills / 4


TOOK, ACKED = Step(1, "took", "a", 1), Step(2, "acked", "a", 1)


@pytest.mark.parametrize(
    ("steps", "dead", "flaw"),
    [
        ([], {}, "a was skipped"),
        ([TOOK, ACKED, Step(3, "took", "b", 1), Step(3, "acking", "b", 1)], {}, "b was never sent"),
        ([TOOK, Step(2, "nacked", "a", 1)], {}, "a was left undone"),
        ([TOOK, ACKED, Step(3, "acked", "a", 1)], {}, "a ended 2 times"),
        ([TOOK, ACKED], {"a": [3.0]}, "a ended 2 times"),
        ([TOOK], {"a": [2.0, 3.0]}, "a ended 2 times"),
        ([TOOK, ACKED, Step(3, "took", "a", 2)], {}, "a came again after its ack"),
        ([TOOK, TOOK, ACKED], {}, "a was delivered as attempts [1, 1]"),
        ([TOOK, Step(8.5, "took", "a", 2), Step(9, "acked", "a", 2)], {}, "a was held for 7.5 s by attempt 1"),
        ([TOOK], {"a": [8.5]}, "a was held for 7.5 s by attempt 1"),
    ],
)
def test_the_diaries_show_every_flaw(steps: list[Step], dead: dict[str, list[float]], flaw: str) -> None:
    assert Diaries([TOOK, ACKED], {}).flaws(["a"], INVISIBLE_SECONDS) == []

    assert flaw in Diaries(steps, dead).flaws(["a"], INVISIBLE_SECONDS)
