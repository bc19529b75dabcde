"""The project's own text: what the tests of the house read."""

import ast
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
# The SDK is a program of its own, on the broker's list of packages only to be kept apart from it.
APPS: tuple[str, ...] = tuple(each for each in CONTRACTS["root_packages"] if each != "mqbroker_client")
OURS = (*APPS, "client", "examples", "bench", "tests")


@dataclass(frozen=True)
class Source:
    """One text file of the checkout, with its path from the root."""

    path: Path
    text: str

    @property
    def app(self) -> str:
        return self.path.parts[0]

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax of a Python file."""
        return ast.parse(self.text)

    def __str__(self) -> str:
        return str(self.path)


def sources(pattern: str, *folders: str) -> list[Source]:
    """The files of these folders that match, in the order of their paths."""
    found = (path for folder in folders for path in (ROOT / folder).rglob(pattern))
    return [Source(path.relative_to(ROOT), path.read_text(encoding="utf-8")) for path in sorted(found)]


def modules(*folders: str) -> list[Source]:
    """The Python modules of these folders, without what Django made."""
    return [source for source in sources("*.py", *folders) if "migrations" not in source.path.parts]


def at_or_below(app: str) -> frozenset[str]:
    """The apps that one may look into, itself among them, by the import contract of pyproject.toml."""
    rooms = [layer.split(" | ") for layer in CONTRACTS["contracts"][0]["layers"]]
    floor = next(number for number, names in enumerate(rooms) if app in names)
    return frozenset([app, *(name for names in rooms[floor + 1 :] for name in names)])
