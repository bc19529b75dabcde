"""The locks hold versions and hashes that agree with each other, and no place where packages come from."""

import re
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from tools.check import names_a_place
from tools.lock import LOCKS

PIN = re.compile(r"^([a-z0-9-]+)(?:\[[^]]+\])?==(\S+)(?: ; .*?)? \\$", re.MULTILINE)


def pins(lock: str) -> set[tuple[str, str]]:
    """Packages and versions; a package may have one for an older Python and one for a newer."""
    return set(PIN.findall((ROOT / lock).read_text()))


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_place_and_hashes_everything(lock: str) -> None:
    assert not names_a_place(ROOT / lock)
    assert len(pins(lock)) > 50
    for requirement in (ROOT / lock).read_text().replace("\\\n", " ").splitlines():
        assert "--hash=sha256:" in requirement


@pytest.mark.parametrize(
    "line",
    ["--index-url https://example.org/simple", "-i x", "feather @ file:///tmp/feather.whl", "    # from index main"],
)
def test_a_lock_that_names_a_place_is_caught(line: str, tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"feather==1.0 \\\n    --hash=sha256:{'ab' * 32}\n{line}\n")

    assert names_a_place(lock)


@pytest.mark.parametrize("lock", LOCKS)
def test_all_locks_agree_with_the_runtime(lock: str) -> None:
    assert pins("requirements.lock") <= pins(lock)
