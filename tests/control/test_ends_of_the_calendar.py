"""Every door that takes a time takes the ends of the calendar, in zones on both sides of UTC, or says why not."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.broker import characters
from tests.broker.wire import Answer
from tests.control.operators import Operator

# Two of them lie outside of the years 1 to 9999 of UTC, and the last one has an offset that PostgreSQL does not take.
TIMES = (
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00-14:00",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.999999+14:00",
    "9999-12-31T23:59:59.999999-14:00",
    "2026-01-01T00:00:00+23:59",
)
ZONES = ("UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/New_York")
Call = Callable[[Operator, str, str], list[Answer]]


def sends(field: str) -> Call:
    """A send in each of its forms, and what is then read of it."""

    def call(operator: Operator, name: str, at: str) -> list[Answer]:
        message = {"body": "x", field: at}
        whole = {**message, "topic": name, "message_id": str(uuid.uuid4())}
        bulk = [{"op": "send", **whole, "message_id": str(uuid.uuid4())}]
        return [
            operator.make("/v1/messages", **whole),
            operator.make("/v1/messages/batch", topic=name, messages=[message, message]),
            operator.make("/v1/transactions", **whole, producer_group=name),
            operator.make("/v1/bulk", operations=bulk),
            operator.get(f"/v1/messages/{whole['message_id']}"),
            operator.get(f"/v1/messages?topic={name}"),
            operator.get(f"/v1/transactions?topic={name}"),
            operator.make(f"/v1/consumer-groups/{name}/receive", topic=name),
        ]

    return call


def puts(path: str, field: str, **fields: Any) -> Call:
    """A change of a registry, what is then read of it, and its list."""

    def call(operator: Operator, name: str, at: str) -> list[Answer]:
        given = {**fields, **({"message": {"topic": name, "body": "x"}} if path == "schedules" else {})}
        one = f"/v1/{path}/{name}"
        found = [operator.put(one, **given, **{field: at}), operator.get(one), operator.get(f"/v1/{path}?limit=500")]
        operator.delete(one)
        return found

    return call


def makes_key(operator: Operator, name: str, at: str) -> list[Answer]:
    """A key that expires."""
    made = operator.make("/v1/api-keys", name=name, scopes=["metrics"], expires_at=at)
    changed = operator.put(f"/v1/api-keys/{name}", expires_at=at)
    found = [made, changed, operator.get(f"/v1/api-keys/{name}"), operator.get("/v1/api-keys")]
    operator.delete(f"/v1/api-keys/{name}")
    return found


def resets(operator: Operator, name: str, at: str) -> list[Answer]:
    """A reset of offsets, tried and done."""
    operator.put(f"/v1/topics/{name}", queues=1)
    operator.put(f"/v1/consumer-groups/{name}", start_at="earliest")
    path = f"/v1/consumer-groups/{name}/offsets"
    return [operator.put(path, topic=name, to=at, dry_run=is_dry) for is_dry in (True, False)]


def looks_up(operator: Operator, name: str, at: str) -> list[Answer]:
    """Look-ups between two times."""
    operator.put(f"/v1/topics/{name}", queues=1)
    time = at.replace("+", "%2B")
    return [
        operator.get(f"/v1/{path}{bound}={time}")
        for path in (f"messages?topic={name}&key=k&", "discarded?")
        for bound in ("from", "to")
    ]


DOORS: dict[str, Call] = {
    "deliver_at": sends("deliver_at"),
    "born_at": sends("born_at"),
    "sends_from": puts("topics", "sends_from", queues=1),
    "expires_at": makes_key,
    "offsets": resets,
    "look-ups": looks_up,
    **{
        f"{field} in {zone}": puts("schedules", field, cron="30 2 * * *", time_zone=zone)
        for field in ("begins_at", "ends_at")
        for zone in ZONES
    },
}


@pytest.mark.parametrize("door", DOORS)
def test_a_time_at_an_end_of_the_calendar_is_taken_or_refused_by_name(operator: Operator, door: str) -> None:
    failed = []
    for at in TIMES:
        for answer in DOORS[door](operator, characters.name("calendar"), at):
            parts = (answer.document or {}).get("results", ())
            results = [answer.status, *(part["status"] for part in parts if "code" in part)]
            failed += [(at, answer.document) for status in results if status >= 500]

    assert failed == []
