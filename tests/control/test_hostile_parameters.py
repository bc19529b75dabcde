"""Every parameter of every path, given what no sane caller gives: an answer that says so, and never a failure."""

import itertools
from typing import Any
from urllib.parse import quote

import pytest

from tests.broker import characters
from tests.control.operators import Operator, illegal

UUID = "0190f7c2-0000-7000-8000-000000000000"
HOSTILE = (
    "\0",
    "a\0b",
    "",
    " ",
    "9" * 18,
    "9" * 19,
    "9" * 400,
    "-1",
    "-" + "9" * 19,
    "1e308",
    "nan",
    "inf",
    "-inf",
    "1.5",
    "٣",
    "\ud7ff\uffff",
    "%",
    "'",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.999999-14:00",
    UUID,
    "x" * 3000,
    # Cursors: base64 of null, "\u0000", 1e999, [], ["9999-12-31T23:59:59-14:00"], ["2026-01-01T00:00:00+20:00"],
    # 99999999999999999999 and {}.
    "bnVsbA",
    "Ilx1MDAwMCI",
    "MWU5OTk",
    "W10",
    "WyI5OTk5LTEyLTMxVDIzOjU5OjU5LTE0OjAwIl0",
    "WyIyMDI2LTAxLTAxVDAwOjAwOjAwKzIwOjAwIl0",
    "OTk5OTk5OTk5OTk5OTk5OTk5OTk",
    "e30",
)


@pytest.fixture
def known(operator: Operator) -> dict[str, str]:
    """What the parameters of paths may name: one of each, so that the query is looked at."""
    name = characters.name("hostile")
    begun = operator.make("/v1/transactions", producer_group=name, topic=name, body="order").document
    operator.make(f"/v1/consumer-groups/{name}/receive", topic=name)
    operator.make("/v1/api-keys", name=name, scopes=["manage"])
    ids = {"transaction_id": begun["transaction_id"], "message_id": begun["message_id"]}
    return ids | {"topic": name, "group": name, "name": name, "name_or_id": name, "queue_id": "0", "endpoint_id": "1"}


def reads(document: Any) -> list[tuple[str, list[str], list[str]]]:
    """Each path that is read, with the names in it and those of its query."""
    return [
        (
            path,
            *(
                [part["name"] for part in found["get"].get("parameters", ()) if part["in"] == place]
                for place in ("path", "query")
            ),
        )
        for path, found in document["paths"].items()
        if "get" in found
    ]


def test_no_parameter_of_a_read_makes_the_broker_fail(operator: Operator, known: dict[str, str]) -> None:
    asked = []
    for path, named, queried in reads(operator.reads("/v1/schema")):
        if path in ("/v1/schema", "/metrics"):
            continue
        asked += [
            path.format(**known | {name: quote(value, safe="")}) for name, value in itertools.product(named, HOSTILE)
        ]
        needed = f"topic={known['topic']}&" if path == "/v1/messages" else ""
        asked += [
            f"{path.format(**known)}?{needed if name != 'topic' else ''}{name}={quote(value, safe='')}"
            for name, value in itertools.product(queried, HOSTILE)
        ]

    failed = [one for one in asked if operator.get(one).status >= 500]

    assert len(asked) > 500
    assert failed == []


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/messages?topic={topic}&form=2026-01-01T00:00:00Z", "topic, key, from, to, limit, cursor, cell"),
        ("/v1/topics/{topic}/queues/0/messages?form=1", "offset, max, wait_seconds, cell"),
        ("/v1/consumer-groups/{topic}/offsets?form=1", "topic, cell"),
        ("/v1/dead-letters/{topic}?form=1", "cursor, limit"),
    ],
)
def test_a_parameter_that_does_not_exist_is_refused_on_the_data_plane_too(
    operator: Operator, orders: str, path: str, fields: str
) -> None:
    operator.put(f"/v1/topics/{orders}")
    operator.put(f"/v1/consumer-groups/{orders}")

    answer = operator.get(path.format(topic=orders))

    assert illegal(answer) == f"There is no field form here: the fields are {fields}."
