"""Deletes over cells: what meets one in a cell finds the thing there, or finds it nowhere."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
from mqbroker_client import Producer

from tests.broker.cells import Cells
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, Document, Wire

# The delete of a group has written all but its entry in the audit.
WAITING = "SELECT count(*) FROM pg_locks WHERE relation = 'audit_entry'::regclass AND NOT granted"
WAITING_IN_CELL = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def answered(wire: Wire, half: Document) -> Answer:
    """The answer to a begin, which is repeated while the broker asks for that."""
    while (answer := wire.post("/v1/transactions", half)).status == 503:
        pass
    return answer


def test_a_begin_that_meets_the_delete_of_its_group_in_another_cell_makes_it_anew(
    broker: RunningBroker, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    group, wire = f"/v1/producer-groups/{producer.group}", broker.wire(1)
    half = {"producer_group": producer.group, "topic": spread[1], "body": "order"}
    for web in range(2):
        Producer(broker.client(web), producer.group).begin(spread[1], b"known now").rollback()

    with ThreadPoolExecutor(2) as callers, psycopg.connect(cells.urls[0]) as held:
        held.execute("LOCK TABLE audit_entry IN EXCLUSIVE MODE")
        deleted = callers.submit(broker.wire().call, "DELETE", group)
        eventually(lambda: cells.sql(0, WAITING) != [(0,)])
        begun = callers.submit(answered, wire, half)
        eventually(lambda: begun.done() or cells.sql(1, WAITING_IN_CELL) != [(0,)])
        held.rollback()
        answer = begun.result()

    assert (deleted.result().status, answer.status) == (204, 201), answer.document
    end = {"producer_group": producer.group, "state": "COMMIT"}
    assert wire.post(f"/v1/transactions/{answer.document['transaction_id']}/end", end).status == 200
