"""Answers to checks: only a clear state decides; whatever else a producer's server does is UNKNOWN."""

from contextlib import ExitStack
from functools import partial
from uuid import UUID

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


def states_with_status(status: int) -> Reply:
    async def reply(asked: Asked) -> web.StreamResponse:
        results = [{"transaction_id": entry["transaction_id"], "state": "COMMIT"} for entry in asked.transactions]
        return web.json_response({"results": results}, status=status)

    return reply


# What an endpoint says instead of a state, with the status and the beginning of the reason that the history gives.
NO_DECISION: dict[str, tuple[Reply, int | None, str | None]] = {
    "a bare 200": (says(200), 200, "The endpoint answered 200."),
    "other JSON": (says(200, {"state": "COMMIT"}), 200, 'The endpoint answered 200. {"state": "COMMIT"}'),
    "no object": (says(200, ["COMMIT"]), 200, 'The endpoint answered 200. ["COMMIT"]'),
    "a missing entry": (
        commits_another(),
        200,
        'The endpoint answered 200. {"results": [{"transaction_id": "00000000-0000-0000-0000-000000000001", '
        '"state": "COMMIT"}]}',
    ),
    "a redirect": (says(307, Location="http://127.0.0.1:1/"), 307, "The endpoint answered 307."),
    "another status": (states_with_status(201), 201, "The endpoint answered 201. "),
    "a failure": (says(500), 500, "The endpoint answered 500."),
    "silence": (silence(3), None, "The deadline of 1 s passed before its whole answer came."),
    "two states": (contradicts_itself(), 200, "two different states"),
    "UNKNOWN": (states("UNKNOWN"), 200, None),
}


def test_whatever_is_no_clear_state_is_unknown_and_asked_again(
    broker: RunningBroker, wire: Wire, consumer: Consumer, orders: str
) -> None:
    with ExitStack() as servers:
        transactions = {}
        for case, (bad, _, _) in NO_DECISION.items():
            server = servers.enter_context(ProducerEndpoint())
            server.replies(bad, states("COMMIT"))
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
