"""Faults of every kind under load, by a seed: what was acknowledged is kept, once, and decided once."""

import asyncio
from pathlib import Path

import pytest

from tests.broker import prepared_servers
from tests.chaos import storm

SEED = 77


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seconds", [15, pytest.param(40, marks=pytest.mark.long)])
def test_a_storm_breaks_no_promise(tmp_path: Path, seconds: float) -> None:
    tmp_path.chmod(0o711)
    with storm.place_in(tmp_path, SEED, prepared_servers.started) as place:
        report = asyncio.run(storm.rage(place, seconds))

    assert report.is_clean, "\n".join(report.lines())
    assert report.faults
    assert report.acknowledged > 100
