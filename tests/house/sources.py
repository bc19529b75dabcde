"""The project's own text: what the tests of the house read."""

import ast
import re
import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
# The SDK is a program of its own, on the broker's list of packages only to be kept apart from it.
APPS: tuple[str, ...] = tuple(each for each in CONTRACTS["root_packages"] if each != "mqbroker_client")
# Django apps within another room, from the top down. The apps of one row do not look into each other.
WITHIN = {
    "console": (("console",), ("actions", "monitoring"), ("cells",)),
    "transactions": (("transactions", "outboxes"),),
    "scheduling": (("schedules",), ("scheduling",)),
}
LABEL = re.compile(r"^    (?:label = \"(\w+)\"|name = \"(?:\w+\.)*(\w+)\")$", re.MULTILINE)
# The rooms that a broker runs by; the tools of a checkout drive it from outside.
BROKER = tuple(each for each in APPS if each != "tools")
OURS = (*APPS, "client", "examples", "tests")


@dataclass(frozen=True)
class Source:
    """One text file of the checkout, with its path from the root."""

    path: Path
    text: str

    @property
    def room(self) -> str:
        """The folder at the top of the checkout."""
        return self.path.parts[0]

    @property
    def app(self) -> str:
        """The label of the Django app that the file belongs to; the folder at the top where no app is."""
        found = (label for folder in self.path.parents if (label := labels().get(folder)))
        return next(found, self.room)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax of a Python file."""
        return ast.parse(self.text)

    def __str__(self) -> str:
        return str(self.path)


def sources(pattern: str, *folders: str) -> list[Source]:
    """The files of these folders that match, in the order of their paths; each is read and parsed once in a process."""
    return [_source(path) for path in sorted(path for folder in folders for path in (ROOT / folder).rglob(pattern))]


@cache
def _source(path: Path) -> Source:
    return Source(path.relative_to(ROOT), path.read_text(encoding="utf-8"))


def modules(*folders: str) -> list[Source]:
    """The Python modules of these folders, without what Django made."""
    return [source for source in sources("*.py", *folders) if "migrations" not in source.path.parts]


@cache
def labels() -> dict[Path, str]:
    """The label of each Django app of ours, by the app's folder."""
    found = {}
    for path in (path for room in APPS for path in (ROOT / room).rglob("apps.py")):
        names = LABEL.findall(path.read_text(encoding="utf-8"))
        found[path.parent.relative_to(ROOT)] = next((label for label, _ in names if label), names[0][1])
    return found


def at_or_below(app: str) -> frozenset[str]:
    """The apps that one may look into, itself among them, by the import contract of pyproject.toml and WITHIN."""
    layers = [layer.split(" | ") for layer in CONTRACTS["contracts"][0]["layers"]]
    rows = {room: WITHIN.get(room, ((room,),)) for layer in layers for room in layer}
    own = next(room for room in rows if any(app in row for row in rows[room]))
    floor = next(number for number, layer in enumerate(layers) if own in layer)
    below = [row for layer in layers[floor + 1 :] for room in layer for row in rows[room]]
    row = next(number for number, names in enumerate(rows[own]) if app in names)
    return frozenset([app, *(name for names in (*rows[own][row + 1 :], *below) for name in names)])
