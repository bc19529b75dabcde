"""Answers to checks: only a clear state decides; whatever else a producer's server does is UNKNOWN."""

import re
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from uuid import UUID

import psycopg
import pytest
from aiohttp import web
from mqbroker_client import Consumer, Producer

from tests.broker import characters
from tests.broker.characters import bodies, register
from tests.broker.endpoints import Asked, ProducerEndpoint, Reply, says, silence, states
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended
from tests.broker.wire import Document, Wire


def commits_another() -> Reply:
    return says(200, {"results": [{"transaction_id": str(UUID(int=1)), "state": "COMMIT"}]})


def contradicts_itself() -> Reply:
    async def reply(asked: Asked) -> web.StreamResponse:
        named = [{"transaction_id": entry["transaction_id"]} for entry in asked.transactions]
        results = [{**entry, "state": state} for entry in named for state in ("COMMIT", "ROLLBACK")]
        return web.json_response({"results": results})

    return reply


def names_a_state_twice() -> Reply:
    async def reply(asked: Asked) -> web.StreamResponse:
        results = [
            f'{{"transaction_id": "{one["transaction_id"]}", "state": "ROLLBACK", "state": "COMMIT"}}'
            for one in asked.transactions
        ]
        return web.Response(text=f'{{"results": [{", ".join(results)}]}}', content_type="application/json")

    return reply


def beeps() -> Reply:
    async def reply(asked: Asked) -> web.StreamResponse:
        return web.Response(body=b"\x1b[2Jgone\r\n\x07\xff")

    return reply


def states_with_status(status: int) -> Reply:
    async def reply(asked: Asked) -> web.StreamResponse:
        results = [{"transaction_id": entry["transaction_id"], "state": "COMMIT"} for entry in asked.transactions]
        return web.json_response({"results": results}, status=status)

    return reply


# What an endpoint says instead of a state, with the status and the beginning of the reason that the history gives.
VOID = (
    "The endpoint answered 200 without this transaction's state: "
    '{"results": [{"transaction_id": "…", "state": "COMMIT"}]} has one.'
)
NO_DECISION: dict[str, tuple[Reply, int | None, str | None]] = {
    "a bare 200": (says(200), 200, VOID),
    "other JSON": (says(200, {"state": "COMMIT"}), 200, f'{VOID} {{"state": "COMMIT"}}'),
    "no text": (beeps(), 200, f"{VOID} \ufffd[2Jgone\n\ufffd\ufffd"),
    "no object": (says(200, ["COMMIT"]), 200, f'{VOID} ["COMMIT"]'),
    "a missing entry": (
        commits_another(),
        200,
        f'{VOID} {{"results": [{{"transaction_id": "00000000-0000-0000-0000-000000000001", "state": "COMMIT"}}]}}',
    ),
    "another status": (
        states_with_status(201),
        201,
        "The endpoint answered 201: a state is read from an answer with the status 200. ",
    ),
    "a failure": (says(500), 500, "The endpoint answered 500."),
    "silence": (silence(3), None, "The deadline of 1 s passed before its whole answer came."),
    "two states": (contradicts_itself(), 200, "two different states"),
    "one state twice": (names_a_state_twice(), 200, f'{VOID} {{"results": [{{"transaction_id": '),
    "UNKNOWN": (states("UNKNOWN"), 200, None),
    "RocketMQ's UNKNOW": (states("UNKNOW"), 200, None),
}


# What shows that no check function was reached, with the reason that the history gives.
UNREACHED: dict[int, tuple[Reply, str]] = {
    307: (
        says(307, Location="http://127.0.0.1:1/checks/"),
        "The endpoint redirected with 307 to http://127.0.0.1:1/checks/: register the exact URL, with or without its "
        "last slash.",
    ),
    401: (
        says(401),
        "The endpoint answered 401: its server wants a login: let requests through that bear the webhook's signature.",
    ),
    403: (
        says(403, {"detail": "CSRF Failed"}),
        "The endpoint answered 403: its server refused the request itself; in Django, mark the view csrf_exempt.",
    ),
    404: (
        says(404),
        "The endpoint answered 404: nothing is served at this path; register the URL at which checks are answered.",
    ),
    405: (
        says(405),
        "The endpoint answered 405: this path takes no POST; register the URL at which checks are answered.",
    ),
}


def test_an_answer_that_no_check_function_gave_counts_nothing_and_names_the_way_out(
    broker: RunningBroker, wire: Wire, orders: str
) -> None:
    with ExitStack() as servers:
        transactions = {}
        for status, (reply, _) in UNREACHED.items():
            server = servers.enter_context(ProducerEndpoint())
            server.replies(*[reply] * 4, states("COMMIT"))
            producer = Producer(broker.client(), characters.name("order-service"))
            register(broker, producer.group, server.url)
            transactions[status] = producer.begin(orders, b"order 1")

        # More often in vain than a half message is asked about before it is discarded.
        tellings = {
            status: eventually(partial(ended, wire, transaction.transaction_id))
            for status, transaction in transactions.items()
        }

    for status, (_, reason) in UNREACHED.items():
        *in_vain, _ = [event for event in tellings[status]["history"] if event["event"] == "check"]
        assert [(check["status"], check["counted"], check["answer"], check["reason"]) for check in in_vain] == [
            (status, False, None, reason)
        ] * 4
    assert {(telling["state"], telling["check_times"]) for telling in tellings.values()} == {("COMMITTED", 1)}


def test_whatever_is_no_clear_state_is_unknown_and_asked_again(
    broker: RunningBroker, wire: Wire, consumer: Consumer, orders: str
) -> None:
    with ExitStack() as servers:
        transactions = {}
        for case, (bad, _, _) in NO_DECISION.items():
            server = servers.enter_context(ProducerEndpoint())
            server.replies(bad, states("COMMIT_MESSAGE"))
            producer = Producer(broker.client(), characters.name("order-service"))
            register(broker, producer.group, server.url)
            transactions[case] = producer.begin(orders, case.encode())

        tellings = {
            case: eventually(partial(ended, wire, transaction.transaction_id))
            for case, transaction in transactions.items()
        }

    first_checks = {case: telling["history"][1] for case, telling in tellings.items()}
    assert {case: check["status"] for case, check in first_checks.items()} == {
        case: status for case, (_, status, _) in NO_DECISION.items()
    }
    assert [case for case, check in first_checks.items() if not says_why(check, NO_DECISION[case][2])] == []
    assert {(check["answer"], check["counted"]) for check in first_checks.values()} == {("UNKNOWN", True)}
    assert {(telling["state"], telling["check_times"]) for telling in tellings.values()} == {("COMMITTED", 2)}
    assert sorted(bodies(consumer.receive(orders))) == sorted(case.encode() for case in NO_DECISION)


def says_why(check: Document, reason: str | None) -> bool:
    """Whether a check gives a reason that begins so, or none where none is expected."""
    given: str | None = check["reason"]
    return given is None if reason is None else given is not None and given.startswith(reason)


def test_an_answer_decides_while_the_row_of_its_endpoint_is_locked(
    broker: RunningBroker, wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    with psycopg.connect(broker.database_url) as session:
        locked = "SELECT FROM endpoint WHERE url = %s FOR NO KEY UPDATE"
        assert session.execute(locked, (producer_endpoint.url,)).rowcount == 1
        begun = producer.begin(orders, b"order 1")
        telling = eventually(partial(ended, wire, begun.transaction_id))

    assert telling["state"] == "COMMITTED"
    assert len(producer_endpoint.about(str(begun.transaction_id))) == 1


def refuses_by_its_clock(status: int, ahead: timedelta) -> Reply:
    """Refuses each signature, as a server does whose clock is so far ahead."""

    async def reply(asked: Asked) -> web.StreamResponse:
        return web.Response(status=status, headers={"Date": format_datetime(datetime.now(UTC) + ahead, usegmt=True)})

    return reply


@pytest.mark.parametrize(
    ("status", "minutes", "said"),
    [
        (401, 10, "its clock is 600 s ahead of the database's"),
        (401, -10, "its clock is 600 s behind the database's"),
        (400, 10, "its clock is 600 s ahead of the database's"),
        (403, -10, "its clock is 600 s behind the database's"),
        (401, 1, "its server wants a login"),
    ],
)
def test_an_endpoint_whose_clock_is_off_is_told_of_its_clock_and_not_of_a_login(
    broker: RunningBroker,
    wire: Wire,
    endpoint: ProducerEndpoint,
    producer: Producer,
    status: int,
    minutes: int,
    said: str,
) -> None:
    endpoint.replies(refuses_by_its_clock(status, timedelta(minutes=minutes)))
    register(broker, producer.group, endpoint.url)
    path = f"/v1/producer-groups/{producer.group}/endpoints"
    [registered] = wire.get(path).document["results"]

    reason = wire.post(f"{path}/{registered['id']}/test", {}).document["reason"]

    # A second may pass between the answer and the look at it.
    assert re.sub(r"\b(59[0-9]|60[0-9])\b", "600", reason).startswith(f"The endpoint answered {status}: {said}")
