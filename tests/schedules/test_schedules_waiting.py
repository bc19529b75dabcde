"""What cannot be sent now waits, and is sent when it can be; what never can be was not fired."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.broker import characters
from tests.broker.polling import eventually
from tests.schedules.conftest import Plan
from tests.schedules.test_schedules import EACH_SECOND, NEVER_SOON, seconds_of


@pytest.mark.parametrize(
    ("closed", "opened"),
    [({"permission": "r"}, {"permission": "rw"}), ({"sends_from": "9999-01-01T00:00:00Z"}, {"sends_from": None})],
    ids=str,
)
def test_while_its_topic_takes_no_messages_its_firings_wait_and_none_is_dropped(
    plan: Plan, closed: dict[str, Any], opened: dict[str, Any]
) -> None:
    topic = f"/v1/topics/{plan.topic}"
    plan.operator.put(topic, **closed)
    plan.puts(cron=EACH_SECOND)
    assert eventually(lambda: plan.shown["failure"]).endswith("The message waits.")
    since = plan.shown["failed_at"]
    # Behind its second try.
    eventually(lambda: plan.shown["fired"] >= 12)
    assert plan.shown["failed_at"] == since

    plan.operator.put(topic, **opened)
    fired = plan.puts(paused=True)["fired"]

    times = seconds_of(plan.receives_all(fired))
    assert times == [times[0] + timedelta(seconds=number) for number in range(fired)]
    assert plan.shown["fired"] == fired
    eventually(lambda: (plan.shown["failure"], plan.shown["failed_at"]) == (None, None))


def test_what_schedules_send_counts_for_the_limit_of_a_namespace_and_waits_for_it(plan: Plan) -> None:
    team = characters.name("team")
    plan.operator.put(f"/v1/namespaces/{team}", messages_per_second=1)
    plan.topic = f"{team}%orders"
    plan.prepare()
    plan.puts(cron=NEVER_SOON, paused=True)
    for _ in range(8):
        plan.fires()

    assert len(plan.receives_all(8)) == 8
    assert eventually(lambda: plan.operator.reads(f"/v1/namespaces/{team}")["refused"]) > 0


def test_a_message_that_is_refused_for_good_was_not_fired(plan: Plan) -> None:
    plan.puts(cron=NEVER_SOON, message={"topic": plan.topic, "body": "x"}, paused=True)
    with psycopg.connect(plan.database_url, autocommit=True) as session:
        session.execute("""UPDATE schedule SET body = '{"body": ""}' WHERE name = %s""", [plan.name])
    plan.fires()

    assert eventually(lambda: plan.shown["failure"]).startswith("message_illegal")
    assert plan.shown["fired"] == 0
