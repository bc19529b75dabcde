"""A schedule sends its message at each of its times, once, and operators say which times these are."""

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.broker import cells
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.conftest import REDIS_URL
from tests.control.operators import Operator
from tests.schedules.conftest import Plan, time_of

EACH_SECOND = "* * * * * *"
NEVER_SOON = "0 0 1 1 *"


def seconds_of(found: list[Document]) -> list[datetime]:
    """The times of messages."""
    return [datetime.fromisoformat(time_of(message)) for message in found]


def test_a_message_is_sent_for_each_second_with_its_schedule_and_its_time(plan: Plan) -> None:
    plan.puts(
        cron=EACH_SECOND,
        message={"topic": plan.topic, "body": "tick", "tags": "new", "keys": ["k"], "properties": {"colour": "red"}},
    )

    found = plan.receives_all(6)

    times = seconds_of(found)
    assert times == [times[0] + timedelta(seconds=number) for number in range(len(times))]
    for message in found:
        assert (message["body"], message["tags"], message["keys"]) == ("tick", "new", ["k"])
        assert message["properties"] == {"colour": "red", "schedule": plan.name, "scheduled_at": time_of(message)}
    assert plan.shown["fired"] >= 6
    assert plan.shown["failure"] is None


def test_none_is_sent_before_its_time(plan: Plan) -> None:
    plan.puts(cron=EACH_SECOND)

    received = [(datetime.now(UTC), message) for _ in range(4) for message in plan.receives()]

    assert len(received) >= 4
    assert all(at >= datetime.fromisoformat(time_of(message)) for at, message in received)


def test_a_paused_schedule_sends_nothing_and_makes_up_for_nothing(plan: Plan) -> None:
    plan.puts(cron=EACH_SECOND)
    plan.receives_all(2)

    paused = plan.puts(paused=True)
    assert paused["next_times"] == []
    # What was decided before is sent: some seconds of it.
    last = datetime.fromisoformat(paused["last_at"])
    eventually(lambda: plan.receives(wait_seconds=1) == [] and datetime.now(UTC) > last)
    assert plan.receives(wait_seconds=2) == []

    plan.puts(paused=False)
    [first, *_] = seconds_of(plan.receives_all(2))
    assert first > last + timedelta(seconds=2)


def test_one_is_fired_by_hand_also_while_it_is_paused(plan: Plan) -> None:
    plan.puts(cron=NEVER_SOON, paused=True)

    fired = [plan.fires() for _ in range(2)]
    found = plan.receives_all(2)

    assert {message["message_id"] for message in found} == {one["message_id"] for one in fired}
    assert {time_of(message) for message in found} == {one["fire_at"] for one in fired}
    assert plan.shown["fired"] == 2


@pytest.mark.parametrize(
    ("missed", "minutes"), [("skip", []), ("last", [1]), ("all", [5, 4, 3, 2, 1])], ids=["skip", "last", "all"]
)
def test_of_the_times_that_were_missed_it_sends_what_its_policy_says(
    plan: Plan, missed: str, minutes: list[int]
) -> None:
    # Never of itself: at the second of the minute that was 30 s ago.
    second = (datetime.now(UTC) - timedelta(seconds=30)).second
    plan.puts(cron=f"{second} * * * * *", missed=missed, paused=True)
    plan.puts(paused=False)
    before = datetime.fromisoformat(plan.shown["next_at"])

    with psycopg.connect(plan.database_url, autocommit=True) as session:
        session.execute("UPDATE schedule SET next_at = next_at - interval '6 minutes' WHERE name = %s", [plan.name])

    # The latest was 30 s ago: too late by half a minute, and not missed.
    found = seconds_of(plan.receives_all(len(minutes) + 1))
    late = [before - timedelta(minutes=1), *(before - timedelta(minutes=1 + number) for number in minutes)]
    assert found == sorted(late)


def test_no_more_than_a_hundred_missed_times_are_made_up_for(plan: Plan) -> None:
    plan.puts(cron="* * * * *", missed="all")
    plan.was_due("3 days")

    found = seconds_of(plan.receives_all(100))

    assert 100 <= len(found) <= 102
    assert found == [found[0] + timedelta(minutes=number) for number in range(len(found))]
    assert found[-1] > datetime.now(UTC) - timedelta(minutes=2)


def test_a_time_that_is_decided_is_not_decided_again_after_a_change(plan: Plan) -> None:
    plan.puts(cron=EACH_SECOND)
    for number in range(6):
        plan.receives(wait_seconds=1)
        plan.puts(cron=f"* * * * * {'*' if number % 2 else '0-6'}", message={"topic": plan.topic, "body": str(number)})

    found = plan.receives_all(3)

    assert len(seconds_of(found)) == len(set(seconds_of(found)))
    assert plan.shown["failure"] is None


def test_a_schedule_begins_and_ends_when_it_says(plan: Plan) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=7)
    shown = plan.puts(cron=EACH_SECOND, begins_at=begin.isoformat(), ends_at=(begin + timedelta(seconds=2)).isoformat())
    assert [datetime.fromisoformat(at) for at in shown["next_times"]] == [
        begin + timedelta(seconds=number) for number in range(3)
    ]

    found = seconds_of(plan.receives_all(3))

    assert found == [begin + timedelta(seconds=number) for number in range(3)]
    assert (plan.shown["next_at"], plan.shown["next_times"]) == (None, [])
    assert plan.receives(wait_seconds=2) == []


DST = [
    # The clock goes from 2 to 3 on 2027-03-28, and from 3 to 2 on 2027-10-31.
    ("30 2 * * *", "2027-03-27T12:00:00Z", ["2027-03-28T01:00:00", "2027-03-29T00:30:00"]),
    ("0 2,3 * * *", "2027-03-27T12:00:00Z", ["2027-03-28T01:00:00", "2027-03-29T00:00:00"]),
    ("30 2 * * *", "2027-10-30T12:00:00Z", ["2027-10-31T00:30:00", "2027-11-01T01:30:00"]),
    ("*/30 * * * *", "2027-10-31T00:00:00Z", ["2027-10-31T00:00:00", "2027-10-31T00:30:00", "2027-10-31T01:00:00"]),
    ("0 12 * * *", "2027-10-30T12:00:00Z", ["2027-10-31T11:00:00"]),
]


@pytest.mark.parametrize(("cron", "begins_at", "times"), DST, ids=[f"{one[0]} from {one[1][:7]}" for one in DST])
def test_a_time_that_the_clock_skips_is_sent_after_it_and_one_that_it_repeats_is_sent_once(
    plan: Plan, cron: str, begins_at: str, times: list[str]
) -> None:
    shown = plan.puts(cron=cron, time_zone="Europe/Berlin", begins_at=begins_at)

    assert [at[:19] for at in shown["next_times"][: len(times)]] == times


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"cron": "61 * * * *"}, "minute"),
        ({"cron": "* * *"}, "Wrong number of fields"),
        ({"cron": "0 0 30 2 *"}, "day-of-month"),
        ({"time_zone": "Europe/Atlantis"}, "time_zone 'Europe/Atlantis' is unknown"),
        *(({"time_zone": zone}, "time_zone") for zone in ("../../etc/passwd", "/etc/localtime", "")),
        *(({"time_zone": zone}, "is unknown") for zone in ("localtime", "posixrules", "Factory", "posix/UTC")),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "no time up to 2020-01-01"),
        ({"begins_at": "9999-12-31T23:59:59Z"}, "no time"),
        ({"missed": "some"}, "missed"),
        ({"message": {"topic": "%RETRY%x", "body": "b"}}, "belongs to the broker"),
        ({"message": {"topic": "a b", "body": "b"}}, "is not a valid topic name"),
        ({"message": {"topic": "t"}}, "body"),
        ({"message": {"topic": "t", "body": "b", "message_id": "x"}}, "message_id"),
        ({"message": {"topic": "t", "body": "b", "properties": {"schedule": "x"}}}, "set by the schedule itself"),
        ({"message": {"topic": "t", "body": "x" * 70_000}}, "65,536"),
        ({"colour": "red"}, "There is no field colour"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_by_name_and_makes_nothing(plan: Plan, wrong: dict[str, Any], named: str) -> None:
    right = {"cron": "0 3 * * *", "message": {"topic": plan.topic, "body": "b"}}

    answer = plan.tries(**{**right, **wrong})

    assert answer.status in (400, 403, 422), answer.document
    assert named in answer.document["detail"]
    assert plan.operator.get(f"/v1/schedules/{plan.name}").status == 404


def test_a_refused_message_is_said_at_its_schedule_until_one_is_stored(plan: Plan) -> None:
    plan.operator.put(f"/v1/topics/{plan.topic}", permission="r")
    plan.puts(cron=EACH_SECOND)

    failure = eventually(lambda: plan.shown["failure"])
    assert failure.startswith("topic_forbidden")
    assert re.search(r"schedule.*" + plan.name, plan.operator.page("/metrics").text) is None
    failing = re.search(r"^mqbroker_schedules_failing (\d+)", plan.operator.page("/metrics").text, re.MULTILINE)
    assert failing is not None
    assert int(failing[1]) >= 1

    plan.operator.put(f"/v1/topics/{plan.topic}", permission="rw")
    eventually(lambda: plan.shown["failure"] is None)
    assert plan.receives_all(1)


def test_a_change_and_a_firing_have_entries_in_the_audit(plan: Plan) -> None:
    plan.puts(cron=NEVER_SOON)
    plan.fires()
    plan.operator.delete(f"/v1/schedules/{plan.name}")

    with psycopg.connect(plan.database_url) as session:
        found = session.execute("SELECT action FROM audit_entry WHERE target = %s ORDER BY id", [plan.name]).fetchall()
    assert [action for (action,) in found] == ["schedule.put", "schedule.fire", "schedule.delete"]


def test_no_answer_and_no_entry_shows_the_body_and_a_change_leaves_it_as_it_is(plan: Plan) -> None:
    made = plan.puts(cron=EACH_SECOND, message={"topic": plan.topic, "body": "hush"}, paused=True)
    changed = plan.puts(message={"topic": plan.topic, "tags": "new"}, paused=False)

    assert made["message"] == {"topic": plan.topic}
    assert changed["message"] == {"topic": plan.topic, "tags": "new"}
    [message, *_] = plan.receives_all(1)
    assert (message["body"], message["tags"]) == ("hush", "new")
    with psycopg.connect(plan.database_url) as session:
        entries = session.execute("SELECT before, after FROM audit_entry WHERE target = %s", [plan.name]).fetchall()
    assert len(entries) == 2
    assert "hush" not in str(entries)


def test_one_that_is_made_anew_sends_messages_of_its_own(plan: Plan) -> None:
    for body in ("first", "second"):
        plan.puts(cron=EACH_SECOND, message={"topic": plan.topic, "body": body})
        eventually(lambda: any(message["body"] == body for message in plan.receives()))  # noqa: B023  # called at once
        plan.operator.delete(f"/v1/schedules/{plan.name}")


@pytest.fixture
def lonely(prepared: str, tmp_path: Path) -> Iterator[Plan]:
    """A schedule of a broker without beat and worker."""
    with (
        cells.installation(prepared) as url,
        RunningBroker(tmp_path, url, REDIS_URL, webs=2, tasks=False) as broker,
    ):
        made = Plan(Operator(broker.url, API_KEY), url)
        made.prepare()
        yield made


def test_without_a_worker_web_processes_fire_each_time_once(lonely: Plan) -> None:
    lonely.puts(cron=EACH_SECOND)

    found = lonely.receives_all(12)
    # One that a busy process took, and could not store, is taken again 10 s later.
    while (times := seconds_of(found)) != every_second(times) and len(found) < 60:
        found = sorted([*found, *lonely.receives_all(1)], key=time_of)

    assert times == every_second(times)


def every_second(times: list[datetime]) -> list[datetime]:
    """The seconds from the first of these on, as many."""
    return [times[0] + timedelta(seconds=number) for number in range(len(times))]


def test_a_schedule_that_cannot_be_computed_holds_up_no_other(lonely: Plan) -> None:
    gone = Plan(lonely.operator, lonely.database_url, topic=lonely.topic, group=lonely.group)
    gone.puts(cron=EACH_SECOND)
    with psycopg.connect(lonely.database_url, autocommit=True) as session:
        gone_zone = "UPDATE schedule SET time_zone = 'Europe/Atlantis' WHERE name = %s"
        session.execute(gone_zone, [gone.name])
    lonely.puts(cron=EACH_SECOND)

    found = lonely.receives_all(4)

    assert {message["properties"]["schedule"] for message in found[-3:]} == {lonely.name}
    assert gone.shown["next_at"] is not None


def test_changes_at_once_leave_one_schedule(plan: Plan) -> None:
    answers = []

    def put(number: int) -> None:
        answers.append(
            plan.tries(cron=f"{number} 3 * * *", message={"topic": plan.topic, "body": "b", "tags": str(number)})
        )

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    shown = plan.shown
    assert shown["cron"] == f"{shown['message']['tags']} 3 * * *"
