"""Makes the source archives and wheels of the broker and its client, and writes their digests beside them."""

import argparse
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from mqbroker.embedded.cli import options
from mqbroker.embedded.commands import ROOT, python
from mqbroker.embedded.errors import CannotStart

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
    folder.mkdir(parents=True, exist_ok=True)
    for project in (ROOT, ROOT / "client"):
        build(project, folder)
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in archives(folder)]
    (folder / SUMS).write_text("\n".join(sums) + "\n")
    print("\n".join(str(file) for file in [*archives(folder), folder / SUMS]))
    return 0


def build(project: Path, folder: Path) -> None:
    """Builds a project with the locked builder of this environment: one checkout gives the same bytes each time.

    The wheel is built from the source archive, which shows that the archive is complete.
    """
    source = hatchling(project, folder, "sdist")
    with tempfile.TemporaryDirectory() as unpacked:
        shutil.unpack_archive(source, unpacked, filter="data")
        hatchling(Path(unpacked, source.name.removesuffix(".tar.gz")), folder, "wheel")


def hatchling(project: Path, folder: Path, target: str) -> Path:
    """Builds one archive of a project into a folder, and gives its path."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        words = ["-m", "hatchling", "build", "--target", target, "--directory", made]
        if subprocess.run(python(*words), cwd=project).returncode != 0:
            raise CannotStart(f"{project} was not built, see above.")
        [archive] = Path(made).iterdir()
        return archive.replace(folder / archive.name)


def archives(folder: Path) -> list[Path]:
    """The source archives and wheels in a folder, sorted by name."""
    return sorted([*folder.glob("*.tar.gz"), *folder.glob("*.whl")])
