"""Makes the source archives and wheels of the broker and its client, and writes their digests beside them."""

import argparse
import hashlib
import subprocess
from pathlib import Path

from embedded.cli import options
from embedded.commands import ROOT
from embedded.errors import CannotStart
from tools.lock import find_uv

SUMS = "SHA256SUMS"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq build", description=__doc__)
    parser.add_argument(
        "--to",
        type=options.path_given,
        default=ROOT / "dist",
        metavar="FOLDER",
        help="where they go, and SHA256SUMS with a line for each (default: dist)",
    )
    folder: Path = parser.parse_args(words).to
    for project in (ROOT, ROOT / "client"):
        build(project, folder)
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in archives(folder)]
    (folder / SUMS).write_text("\n".join(sums) + "\n")
    print("\n".join(str(file) for file in [*archives(folder), folder / SUMS]))
    return 0


def build(project: Path, folder: Path) -> None:
    """By the locked builder of this environment: the same checkout gives the same bytes, and no index is asked."""
    done = subprocess.run(
        [
            find_uv(),
            "build",
            "--quiet",
            "--offline",
            "--no-build-isolation",
            "--no-create-gitignore",
            "-o",
            folder,
            project,
        ]
    )
    if done.returncode != 0:
        raise CannotStart(f"{project} was not built, see above.")


def archives(folder: Path) -> list[Path]:
    """The source archives and wheels in a folder, sorted by name."""
    return sorted([*folder.glob("*.tar.gz"), *folder.glob("*.whl")])
