"""Faults of every kind under load, by a seed: what was acknowledged is kept, once, and decided once."""

import asyncio
from pathlib import Path

import pytest

from tests.chaos import storm

SEED = 77
SECONDS = 40


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_a_storm_breaks_no_promise(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    with storm.place_in(tmp_path, SEED) as place:
        report = asyncio.run(storm.rage(place, SECONDS))

    assert report.is_clean, "\n".join(report.lines())
    assert report.faults
    assert report.acknowledged > 100
