"""Twenty consumers of a group with limits, some of which are killed: no value is ever above its limits."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.delivery.limited import LimitedGroup
from tests.delivery.limited_crowds import above_rate, at_once, crowd, done, handed_in, largest_of, noted

# MQ_LIMITS_MESSAGES=50000 is the long run.
MESSAGES = int(os.environ.get("MQ_LIMITS_MESSAGES", "1200"))
VALUES = 200 if MESSAGES >= 50_000 else 40
IN_FLIGHT, PER_SECOND, BURST = 3, 20.0, 5
KILLS = max(MESSAGES // 1000, 2)


@pytest.mark.chaos
def test_no_value_is_above_its_limits_while_consumers_are_killed(broker: RunningBroker, tmp_path: Path) -> None:
    group = LimitedGroup(broker)
    own: dict[str, object] = {f"free-{number}": {} for number in range(VALUES // 10)}
    group.limit(in_flight=IN_FLIGHT, per_second=PER_SECOND, burst=BURST, values=own)
    values = [*own, *(f"value-{number}" for number in range(VALUES - len(own)))]
    for number in range(MESSAGES // VALUES):
        group.send_each(values, number)
    database = broker.database_of(group.topic)
    with noted(database), crowd(broker, group, tmp_path) as consumers:
        for _ in range(KILLS):
            time.sleep(random.uniform(0.1, 0.5))
            victim = random.choice(consumers)
            victim.kill()
            victim.start()
        wanted = {f"{value} {number}" for value in values for number in range(MESSAGES // VALUES)}
        eventually(lambda: done(tmp_path) >= wanted, within_seconds=120)
        handed = handed_in(database)

    largest = largest_of(handed)
    print(
        f"{len(wanted)} messages, {KILLS} kills, {len(handed)} deliveries that count, at most {max(largest.values())}"
    )
    assert max(largest.values()) == IN_FLIGHT
    assert {value for value in largest if value.startswith("free")} == set()
    assert above_rate([(each.value, each.at) for each in handed], PER_SECOND, BURST) == []
    assert {value: count for value, count in at_once(tmp_path).items() if count > IN_FLIGHT and value not in own} == {}


def test_the_checks_find_what_is_above_its_limit(tmp_path: Path) -> None:
    times = [0.0] * BURST
    assert above_rate([("a", at) for at in times], PER_SECOND, BURST) == []
    assert above_rate([("a", at) for at in [*times, 1 / PER_SECOND]], PER_SECOND, BURST) == []
    early = 0.9 / PER_SECOND
    assert above_rate([("a", at) for at in [*times, early]], PER_SECOND, BURST) == [("a", early)]

    (tmp_path / "one.diary").write_text("1 took x a 0\n1 took y a 1\n2 done x a 0\n3 took z a 2\n")
    assert at_once(tmp_path) == {"a": 1}
    (tmp_path / "two.diary").write_text("1.5 took w a 3\n2.5 done w a 3\n")
    assert at_once(tmp_path) == {"a": 2}
