"""A topic that has left its cell: a process that keeps an old map of topics stores nothing there."""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker.cells import Cells
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, Document, Wire

CALLERS = 12


def _known(broker: RunningBroker, topic: str) -> None:
    """Has both processes know where the topic lies: for 2 s from now on."""
    for web in range(2):
        assert broker.wire(web).post("/v1/messages", {"topic": topic, "body": "before"}).status == 201


def _send(wire: Wire, topic: str, body: str = "x", **fields: object) -> Answer:
    return wire.post("/v1/messages", {"topic": topic, "body": body, **fields})


@pytest.mark.long
def test_without_the_guard_a_process_with_an_old_map_stores_at_the_old_cell(
    broker: RunningBroker, cells: Cells, spread: Sequence[str]
) -> None:
    def sent_by_an_old_map() -> bool:
        """Whether the send came while the process knew the old map; on a busy machine it may come too late."""
        cells.move(spread[1], 1)
        _known(broker, spread[1])
        before = cells.stored(spread[1])
        cells.move(spread[1], 2)
        assert _send(broker.wire(), spread[1]).status == 201
        return cells.stored(spread[1]) == [0, before[1] + 1, before[2]]

    assert eventually(sent_by_an_old_map)


def test_what_an_old_map_leads_to_the_old_cell_is_stored_at_the_new_one(
    broker: RunningBroker, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    beside = f"{spread[1]}-beside"
    cells.open(1)
    for topic in (spread[1], beside):
        _known(broker, topic)
    cells.guard(1, spread[1])
    cells.move(spread[1], 2)
    half = {"producer_group": producer.group, "topic": spread[1], "body": "half"}
    batch = {"topic": spread[1], "messages": [{"body": "a"}, {"body": "b"}]}
    several: list[Document] = [
        {"op": "send", "topic": spread[1], "body": "of a bulk"},
        {"op": "half", **half},
        {"op": "send", "topic": beside, "body": "stays"},
    ]

    with ThreadPoolExecutor(CALLERS) as threads:
        sent = [threads.submit(_send, broker.wire(place % 2), spread[1], str(place)) for place in range(CALLERS)]
        begun = threads.submit(broker.wire(0).post, "/v1/transactions", half)
        together = threads.submit(broker.wire(1).post, "/v1/messages/batch", batch)
        in_bulk = threads.submit(broker.wire(1).bulk, *several)

    assert [one.result().status for one in sent] == [201] * CALLERS
    assert (begun.result().status, together.result().status) == (201, 201)
    assert [one["status"] for one in in_bulk.result()] == [201] * 3
    assert cells.stored(spread[1]) == [0, 2, CALLERS + 1 + 2 + 2]
    assert cells.stored(beside) == [0, 3, 0]


def test_an_end_by_an_old_map_is_decided_in_the_new_cell(
    broker: RunningBroker, cells: Cells, producer: Producer, consumer: Consumer, spread: Sequence[str]
) -> None:
    _known(broker, spread[1])
    cells.guard(1, spread[1])
    cells.move(spread[1], 2)
    begun = broker.wire(1).post(
        "/v1/transactions",
        {"producer_group": producer.group, "topic": spread[1], "body": "x", "transaction_id": str(uuid.uuid4())},
    )

    ended = broker.wire(0).post(
        f"/v1/transactions/{begun.document['transaction_id']}/end",
        {"producer_group": producer.group, "topic": spread[1], "state": "COMMIT"},
    )

    assert begun.document["cell"] == "c2"
    assert (ended.status, ended.document["state"]) == (200, "COMMITTED")


@pytest.mark.parametrize("kind", ["single", "batch", "bulk", "half"])
def test_while_the_map_has_no_new_cell_yet_it_is_refused_and_stored_nowhere(
    broker: RunningBroker, cells: Cells, producer: Producer, spread: Sequence[str], kind: str
) -> None:
    _known(broker, spread[1])
    cells.guard(1, spread[1])
    wire = broker.wire()
    half = {"producer_group": producer.group, "topic": spread[1], "body": "half"}

    if kind == "bulk":
        [refused] = wire.bulk({"op": "send", "topic": spread[1], "body": "x"})
    else:
        kinds: dict[str, tuple[str, Document]] = {
            "single": ("/v1/messages", {"topic": spread[1], "body": "x"}),
            "batch": ("/v1/messages/batch", {"topic": spread[1], "messages": [{"body": "a"}, {"body": "b"}]}),
            "half": ("/v1/transactions", half),
        }
        answer = wire.post(*kinds[kind])
        refused = answer.problem
        assert answer.headers["retry-after"] == "1"

    assert (refused["status"], refused["code"]) == (503, "topic_moved")
    assert f"The topic {spread[1]} has left the cell c1" in refused["detail"]
    assert cells.stored(spread[1]) == [0, 2, 0]


def test_a_session_opened_behind_a_move_takes_nothing_by_the_map_from_before_it(
    broker: RunningBroker, cells: Cells, producer: Producer, consumer: Consumer, spread: Sequence[str]
) -> None:
    """Without a guard: the version of the map is what keeps the messages from the old cell."""
    _known(broker, spread[1])
    half = {"producer_group": producer.group, "topic": spread[1], "body": "half"}
    assert broker.wire(0).post("/v1/transactions", half).status == 201
    cells.move(spread[1], 2)
    cells.sql(0, "UPDATE cell_map SET version = version + 1")
    cells.end_sessions(1)

    with ThreadPoolExecutor(CALLERS) as threads:
        sent = [threads.submit(_send, broker.wire(place % 2), spread[1], str(place)) for place in range(CALLERS)]
        begun = threads.submit(broker.wire(0).post, "/v1/transactions", half)

    assert [one.result().status for one in sent] == [201] * CALLERS
    assert begun.result().document["cell"] == "c2"
    assert cells.stored(spread[1]) == [0, 3, CALLERS + 1]
    assert eventually(lambda: consumer.receive(spread[1], max_messages=CALLERS))


def test_an_end_that_finds_nothing_while_the_map_has_changed_is_refused_once_and_then_answered(
    wire: Wire, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    end = {"producer_group": producer.group, "state": "COMMIT"}
    unknown = f"/v1/transactions/{uuid.uuid4()}/end"
    wire.post(unknown, end)
    known = wire.post(unknown, end)
    cells.sql(0, "UPDATE cell_map SET version = version + 1")

    changed = wire.post(unknown, end)
    again = wire.post(unknown, end)

    assert (known.status, known.problem["code"]) == (404, "transaction_not_found")
    assert (changed.status, changed.problem["code"]) == (503, "topic_moved")
    assert (again.status, again.problem["code"]) == (404, "transaction_not_found")


def test_a_cell_that_was_fenced_is_not_written_while_the_control_cannot_say_what_lies_there(
    broker: RunningBroker, cells: Cells, spread: Sequence[str]
) -> None:
    _known(broker, spread[1])

    with cells.away(0):
        cells.sql(1, "UPDATE cell_identity SET epoch = epoch + 1")
        cells.end_sessions(1)
        refused = _send(broker.wire(), spread[1])
        stored = cells.sql(
            1, "SELECT count(*) FROM commit_log AS c JOIN topic AS t ON t.id = c.topic_id AND t.name = %s", spread[1]
        )

    assert refused.status == 503
    assert stored == [(2,)]
    eventually(lambda: _send(broker.wire(), spread[1]).status == 201, within_seconds=20)
