"""A checkout whose broker is measured: this one, or another one whose own code runs beside this one."""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OURS = Path(__file__).resolve().parents[2]
# The name of the side that another checkout has in the tables.
OTHER = "beside"
# The other checkout prints its own command lines, because versions may start different programs.
ASK = """
import importlib, json, pathlib, sys
package = "embedded" if pathlib.Path("embedded").is_dir() else "mqbroker.embedded"
commands = importlib.import_module(package + ".commands")
key, port, processes, schedule = sys.argv[1:]
print(json.dumps({
    "prepare": commands.manage("prepare", "--api-key", key),
    "web": commands.web(int(port), processes, reload=False),
    "worker": commands.worker(),
    "beat": commands.beat(pathlib.Path(schedule)),
}))
"""


class NoCheckout(Exception):
    """A word that names neither a folder with a broker's code nor a commit."""


@dataclass(frozen=True)
class Checkout:
    """A folder with a broker's code."""

    root: Path = OURS

    @property
    def python(self) -> str:
        """The Python interpreter with the checkout's own dependencies; without such an interpreter, this one."""
        own = self.root / ".venv" / "bin" / "python"
        return str(own) if self.root != OURS and own.exists() else sys.executable

    @property
    def name(self) -> str:
        """The commit that is checked out, as its name in the table."""
        command = ["git", "-C", str(self.root), "describe", "--always", "--dirty"]
        described = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return described.stdout.strip() or self.root.name

    def commands(self, key: str, port: int, processes: str, schedule: Path) -> dict[str, list[str]]:
        """The command lines of its broker's processes and of the preparation, by name."""
        words = [self.python, "-c", ASK, key, str(port), processes, str(schedule)]
        asked = subprocess.run(words, cwd=self.root, stdout=subprocess.PIPE, check=True)
        found: dict[str, list[str]] = json.loads(asked.stdout)
        return found


@contextlib.contextmanager
def named(word: str) -> Iterator[Path]:
    """The folder of a checkout, or of a commit: a git worktree, which is removed afterwards. Raises NoCheckout."""
    folder = Path(word)
    if folder.is_dir():
        if not (folder / "manage.py").is_file():
            raise NoCheckout(f"{folder.resolve()} is not the folder of a checkout: it has no manage.py.")
        yield folder.resolve()
        return
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    if commit is None:
        raise NoCheckout(f"{word} is neither a folder nor a commit of this checkout: git log lists the commits.")
    with tempfile.TemporaryDirectory(prefix="mqbench-checkout-") as place:
        worktree = Path(place) / "checkout"
        if _git("worktree", "add", "--detach", str(worktree), commit) is None:
            raise NoCheckout(f"git cannot make a worktree of {word}: git worktree add --detach {worktree} says why.")
        try:
            yield worktree
        finally:
            _git("worktree", "remove", "--force", str(worktree))


def _git(*words: str) -> str | None:
    """The output of a git command in this checkout; None if the command fails or git is not installed."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["git", "-C", str(OURS), *words], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None
    return None
