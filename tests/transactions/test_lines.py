"""Half messages that wait in a line for their first check, beside those that wait in none."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from mqbroker_client import Producer

from tests.broker.polling import eventually
from tests.broker.tellings import told
from tests.broker.wire import Document, Wire
from tests.house.sources import sources
from transactions import schedule

# In seconds: of a line, of another one, and of none.
IMMUNITIES = (1, 6, 60)
VALUES = re.compile(r"\(VALUES ([(), 0-9]+)\) AS l \(line\)")


@pytest.fixture
def three(producer: Producer, orders: str) -> list[str]:
    """Transactions with these immunities, in the order in which they were begun."""
    begun = [producer.begin(orders, b"order", check_immunity_seconds=seconds) for seconds in IMMUNITIES]
    return [str(transaction.transaction_id) for transaction in begun]


def handed_out(wire: Wire, producer: Producer) -> set[str]:
    """The transactions whose check is due now, which are then asked about."""
    path = f"/v1/producer-groups/{producer.group}/checks/receive"
    found: list[Document] = wire.post(path, {"max_transactions": 10, "wait_seconds": 0}).document["transactions"]
    return {each["transaction_id"] for each in found}


def test_the_undecided_are_listed_and_counted_over_all_lines(wire: Wire, producer: Producer, three: list[str]) -> None:
    listed = wire.get(f"/v1/transactions?producer_group={producer.group}").document["results"]
    group = wire.get(f"/v1/producer-groups/{producer.group}").document

    assert [each["transaction_id"] for each in listed] == three[::-1]
    assert group["pending"] == 3
    assert group["oldest_pending_at"] == told(wire, three[0])["history"][0]["at"]


def test_a_line_is_asked_about_when_it_is_due_and_no_sooner(wire: Wire, producer: Producer, three: list[str]) -> None:
    asked: set[str] = set()
    due = {id_: datetime.fromisoformat(told(wire, id_)["next_check_at"]) for id_ in three}

    def has_come(transaction_id: str) -> bool:
        before = datetime.now(UTC)
        found = handed_out(wire, producer)
        asked.update(found)
        assert all(due[id_] <= datetime.now(UTC) for id_ in found), (due, before)
        return transaction_id in asked

    eventually(lambda: has_come(three[0]))
    assert three[2] not in asked

    eventually(lambda: has_come(three[1]))
    assert three[2] not in asked


def test_a_check_that_is_asked_for_takes_a_half_message_out_of_its_line(
    wire: Wire, producer: Producer, three: list[str]
) -> None:
    before = datetime.fromisoformat(told(wire, three[1])["next_check_at"])

    wire.post(f"/v1/transactions/{three[1]}/check", {})

    assert datetime.fromisoformat(told(wire, three[1])["next_check_at"]) < before - timedelta(seconds=1)
    eventually(lambda: three[1] in handed_out(wire, producer))


def test_each_statement_that_reads_line_by_line_names_all_lines() -> None:
    named = {
        source.path.name: [
            {int(line) for line in re.findall(r"\d+", values)} - {0} for values in VALUES.findall(source.text)
        ]
        for source in sources("*.sql", "transactions")
        if VALUES.search(source.text)
    }

    assert len(named) > 5
    assert {name: lines for name, lines in named.items() if any(each != {*schedule.LINES} for each in lines)} == {}
