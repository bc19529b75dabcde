"""The steps of CONTRIBUTING.md, Releases, in a clone: the version's changes wait for its tag, and become its notes."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from tests.cli.test_installed import built
from tests.docs.pages import page
from tools.mutants import copied

STEPS = page("CONTRIBUTING.md").section("Releases")
IDENTITY = {f"GIT_{who}_{what}": "tests@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
HABITS = "tests/docs/test_habits.py::test_changes_are_unreleased_until_their_version_has_a_tag"
NOTES = "tests/cli/test_installed.py::test_the_notes_of_the_release_are_the_changes_without_links_into_the_checkout"


class Clone:
    """A clone of the last commit."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def types(self, line: str, *words: str) -> None:
        """Runs a command of the steps."""
        subprocess.run([*shlex.split(line), *words], cwd=self.place, env=os.environ | IDENTITY, check=True)

    def has_changes_of(self, version: str) -> None:
        """Commits a changelog whose only part is the latest one, under the name of the version, which has no tag."""
        file = self.place / "CHANGELOG.md"
        head, latest, *_ = file.read_text().split("\n## ")
        file.write_text(f"{head}\n## {version}, {datetime.now(UTC):%Y-%m-%d}\n{latest.partition(chr(10))[2]}")
        self.types("git commit --quiet --all --allow-empty", "--message", f"Release {version}.")
        subprocess.run(["git", "tag", "--delete", f"v{version}"], cwd=self.place, capture_output=True)

    def passes(self, test: str) -> bool:
        """Whether a test passes here, whose servers it does not need."""
        words = [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
        done = subprocess.run(words, cwd=self.place, capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode == 0


@pytest.fixture
def clone() -> Iterator[Clone]:
    if not (ROOT / ".git").exists():
        pytest.skip("an unpacked archive has no commit to clone")
    with copied() as place:
        yield Clone(place)


def test_the_changes_of_a_version_wait_for_its_tag_and_become_its_notes(clone: Clone, tmp_path: Path) -> None:
    [tag] = re.findall(r"`(git tag [^`]+)`", STEPS.text)
    version = tag.rpartition("v")[2]
    clone.has_changes_of(version)

    assert not clone.passes(HABITS)
    clone.types(tag, "--message", version)
    assert clone.passes(HABITS)
    assert clone.passes(NOTES)

    title, _, *notes = (built(clone.place, tmp_path) / "RELEASE_NOTES.md").read_text().splitlines()
    assert (title, notes[0]) == (f"# mqbroker {version}", "### Added")
    assert {path.name for path in tmp_path.glob("*.whl")} == {
        f"{name}-{version}-py3-none-any.whl" for name in ("mqbroker", "mqbroker_client")
    }
