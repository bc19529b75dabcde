"""Makes a release: source archives and wheels of the broker and its client, their components, notes, and digests."""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from mqbroker.embedded.cli import options
from mqbroker.embedded.commands import ROOT, python
from mqbroker.embedded.errors import CannotStart
from tools import components

SUMS, NOTES = "SHA256SUMS", "RELEASE_NOTES.md"
# Published notes are not beside the checkout, so a link into the checkout would lead nowhere.
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)")
UNRELEASED = "Unreleased"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq build", description=__doc__)
    parser.add_argument(
        "--to",
        type=options.path_given,
        default=ROOT / "dist",
        metavar="FOLDER",
        help="the folder of the files and of SHA256SUMS, with a line for each file (default: dist)",
    )
    folder: Path = parser.parse_args(words).to
    folder.mkdir(parents=True, exist_ok=True)
    if uncommitted := git("status", "--porcelain"):
        print(f"mq: {len(uncommitted.splitlines())} files differ from the commit: no release.", file=sys.stderr)
    made = [archive for project in (ROOT, ROOT / "client") for archive in build(project, folder)]
    made += describe(folder)
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in sorted(made)]
    (folder / SUMS).write_text("\n".join(sums) + "\n")
    print("\n".join(str(file) for file in [*sorted(made), folder / SUMS]))
    return 0


def build(project: Path, folder: Path) -> list[Path]:
    """Builds a project with the locked builder of this environment: one checkout gives the same bytes each time.

    The wheel is built from the source archive, which shows that the archive is complete.
    """
    source = hatchling(project, folder, "sdist")
    with tempfile.TemporaryDirectory() as unpacked:
        shutil.unpack_archive(source, unpacked, filter="data")
        return [source, hatchling(Path(unpacked, source.name.removesuffix(".tar.gz")), folder, "wheel")]


def hatchling(project: Path, folder: Path, target: str) -> Path:
    """Builds one archive of a project into a folder, and gives its path."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        words = ["-m", "hatchling", "build", "--target", target, "--directory", made]
        if subprocess.run(python(*words), cwd=project).returncode != 0:
            raise CannotStart(f"{project} was not built, see above.")
        [archive] = Path(made).iterdir()
        return archive.replace(folder / archive.name)


def describe(folder: Path) -> list[Path]:
    """Writes the components and the notes of the release into a folder, and gives their paths."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    bom = folder / f"mqbroker-{version}.cdx.json"
    bom.write_text(components.of_checkout(time_of_commit()))
    (folder / NOTES).write_text(notes((ROOT / "CHANGELOG.md").read_text(), version))
    return [bom, folder / NOTES]


def notes(changes: str, version: str) -> str:
    """The notes of a version, as Markdown, from the text of CHANGELOG.md; before its release the notes of *Unreleased*.

    A relative link becomes its words and the path. Raises LookupError if the changelog has neither part.
    """
    parts = {part.split("\n", 1)[0].split(",")[0]: part.partition("\n")[2] for part in changes.split("\n## ")[1:]}
    for name in (version, UNRELEASED):
        if name in parts:
            text = LINK.sub(r"\1 (`\2`)", parts[name]).strip()
            return f"# mqbroker {version}\n\n{text}\n"
    raise LookupError(f"CHANGELOG.md has no part about {version}, and none that is called {UNRELEASED}.")


def time_of_commit() -> int | None:
    """The time of the checkout in seconds since 1970: SOURCE_DATE_EPOCH, else the time of its commit; None in an
    unpacked archive or without git.
    """
    said = os.environ.get("SOURCE_DATE_EPOCH") or git("show", "--no-patch", "--format=%ct")
    return int(said) if said.isdecimal() else None


def git(*words: str) -> str:
    """The output of a git command in this checkout; empty in an unpacked archive or without git."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return ""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
