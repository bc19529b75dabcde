"""Lists over three cells: what each has becomes one list in its order, and a cell that is away is named."""

from collections.abc import Sequence
from functools import partial

from mqbroker_client import LocalTransactionState, Producer

from tests.broker.cells import Cells
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.wire import Wire


def listed(wire: Wire, path: str) -> list[str]:
    """The ids of all pages of a list, two rows at a time."""
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = wire.get(f"{path}&limit=2{cursor and f'&cursor={cursor}'}").document
        assert page["missing"] == []
        found += [one["transaction_id"] for one in page["results"]]
        cursor = page["next"]
    return found


def test_transactions_of_all_cells_are_one_list_the_undecided_first(
    wire: Wire, producer: Producer, spread: Sequence[str]
) -> None:
    begun = [str(producer.begin(topic, b"half").transaction_id) for topic in (*spread, *reversed(spread))]
    ended = []
    for topic in (*spread, *spread[1:]):
        ended.append(producer.begin(topic, b"half"))
        producer.end(ended[-1].transaction_id, LocalTransactionState.COMMIT)
    decided = [str(one.transaction_id) for one in reversed(ended)]
    of_group = f"/v1/transactions?producer_group={producer.group}"

    assert listed(wire, of_group) == [*reversed(begun), *decided]
    assert listed(wire, f"{of_group}&state=COMMITTED") == decided
    assert listed(wire, f"{of_group}&topic={spread[2]}") == [begun[3], begun[2], decided[0], decided[2]]


def test_discarded_transactions_of_all_cells_are_one_list_the_latest_first(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, spread: Sequence[str]
) -> None:
    producer_endpoint.replies(states("UNKNOWN"))
    of_group = f"/v1/discarded?producer_group={producer.group}"
    begun = []
    for topic in spread:
        begun.append(str(producer.begin(topic, b"half").transaction_id))
        eventually(partial(_is_listed, wire, of_group, begun[-1]), within_seconds=20)

    assert listed(wire, of_group) == begun[::-1]


def _is_listed(wire: Wire, path: str, transaction_id: str) -> bool:
    return transaction_id in listed(wire, path)


def test_a_list_names_a_cell_that_is_away_and_shows_its_rows_once_it_is_back(
    wire: Wire, cells: Cells, producer: Producer, spread: Sequence[str]
) -> None:
    begun = [str(producer.begin(topic, b"half").transaction_id) for topic in (*spread, *spread)]
    path = f"/v1/transactions?producer_group={producer.group}"

    with cells.away(2):
        first = wire.get(f"{path}&limit=3").document
        last = wire.get(f"{path}&cursor={first['next']}").document
    rest = eventually(partial(_answered, wire, f"{path}&cursor={first['next']}"), within_seconds=20)

    assert [one["transaction_id"] for one in first["results"]] == [begun[4], begun[3], begun[1]]
    assert [one["transaction_id"] for one in last["results"]] == [begun[0]]
    assert (first["missing"], last["missing"], last["next"]) == (["c2"], ["c2"], None)
    assert [one["transaction_id"] for one in rest] == [begun[5], begun[2], begun[0]]


def _answered(wire: Wire, path: str) -> list[dict[str, str]] | None:
    page = wire.get(path).document
    return None if page["missing"] else page["results"]
