"""A checkout whose broker is measured: this one, or another one that is run beside it by its own code."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OURS = Path(__file__).resolve().parents[2]
# The checkout prints its own command lines: other versions may start other programs.
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


@dataclass(frozen=True)
class Checkout:
    """A folder with a broker's code."""

    root: Path = OURS

    @property
    def python(self) -> str:
        """The interpreter with the checkout's own dependencies, or this one."""
        own = self.root / ".venv" / "bin" / "python"
        return str(own) if self.root != OURS and own.exists() else sys.executable

    @property
    def name(self) -> str:
        """The commit that is checked out, for the table."""
        command = ["git", "-C", str(self.root), "describe", "--always", "--dirty"]
        described = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return described.stdout.strip() or self.root.name

    def commands(self, key: str, port: int, processes: str, schedule: Path) -> dict[str, list[str]]:
        """The command line of each process of its broker, and that of the preparation."""
        words = [self.python, "-c", ASK, key, str(port), processes, str(schedule)]
        asked = subprocess.run(words, cwd=self.root, stdout=subprocess.PIPE, check=True)
        found: dict[str, list[str]] = json.loads(asked.stdout)
        return found
