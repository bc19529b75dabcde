"""Metrics over three cells: each has its own series, and a cell that is away is one of them."""

from collections.abc import Sequence
from urllib.request import Request, urlopen

from mqbroker_client import Producer

from tests.broker.cells import Cells
from tests.broker.wire import Wire


def series(wire: Wire) -> dict[str, float]:
    """What a scrape answers, by the name with its labels."""
    request = Request(f"{wire.url}/metrics", headers={"Authorization": f"Bearer {wire.api_key}"})
    with urlopen(request, timeout=120) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(number) for name, _, number in (line.rpartition(" ") for line in lines)}


def test_each_cell_has_its_own_series_and_what_is_of_all_has_no_cell(
    wire: Wire, producer: Producer, spread: Sequence[str]
) -> None:
    for number, topic in enumerate(spread):
        for _ in range(number + 1):
            producer.begin(topic, b"half")
    of_group = f'producer_group="{producer.group}",state="PREPARED"'

    found = series(wire)

    assert [found[f'mqbroker_half_messages{{cell="c{cell}",{of_group}}}'] for cell in range(3)] == [1, 2, 3]
    assert [found[f'mqbroker_cell_up{{cell="c{cell}"}}'] for cell in range(3)] == [1, 1, 1]
    assert 'mqbroker_per_second{figure="messages"}' in found
    assert all('cell="c' in name for name in found if name.startswith(("mqbroker_messages", "mqbroker_segments")))


def test_a_cell_that_is_away_has_no_series_and_is_down(wire: Wire, cells: Cells, spread: Sequence[str]) -> None:
    with cells.away(1):
        found = series(wire)

    assert [found[f'mqbroker_cell_up{{cell="c{cell}"}}'] for cell in range(3)] == [1, 0, 1]
    stored = [f'mqbroker_messages_stored_total{{cell="c{cell}"}}' for cell in range(3)]
    assert [name in found for name in stored] == [True, False, True]
