"""Figures of the code: the length of files, classes and functions, and the parts of the write path."""

import ast
import hashlib
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mqbroker.embedded.commands import ROOT

# The folders of the product, including benchmarks and examples.
PRODUCT = (
    "access",
    "analytics",
    "client",
    "console",
    "delivery",
    "examples",
    "mqbroker",
    "scheduling",
    "store",
    "tools",
    "transactions",
    "webhooks",
)
# The folders with the code from the socket to the statement and back.
WRITE_AND_RECEIVE = (
    "scheduling/sending",
    "mqbroker/wire",
    "mqbroker/api",
    "transactions/operations",
    "store/commit",
    "store/messages",
    "store/notices",
    "delivery/receive",
)
# The control plane has a separate budget.
APART = "mqbroker/api/control"
# This many equal lines in two files are a duplicate.
DUPLICATE_LINES = 6
# The first words of a generated file.
GENERATED = "# Generated"


class Part(NamedTuple):
    """A file, class or function of the product, and its number of lines."""

    name: str
    lines: int


def modules(*folders: str) -> Iterator[Path]:
    """The Python files of these folders, without Django's migrations."""
    for folder in folders:
        yield from sorted(path for path in (ROOT / folder).rglob("*.py") if "migrations" not in path.parts)


def files(*folders: str) -> list[Part]:
    """The Python files, the longest first."""
    parts = (Part(str(path.relative_to(ROOT)), len(path.read_text().splitlines())) for path in modules(*folders))
    return sorted(parts, key=lambda part: -part.lines)


def written(*folders: str) -> list[Part]:
    """The Python files that are not generated."""
    return [part for part in files(*folders) if not (ROOT / part.name).read_text().startswith(GENERATED)]


def rows() -> int:
    """The number of row types that statements name, without the types of generated modules."""
    texts = {path: path.read_text() for path in modules(*PRODUCT)}
    generated = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path, text in texts.items()
        if text.startswith(GENERATED)
    }
    found: set[str] = set()
    for tree in map(ast.parse, texts.values()):
        nodes = [*ast.walk(tree)]
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module in generated]
        calls = [node for node in nodes if isinstance(node, ast.Call) and len(node.args) > 2]
        named = {ast.unparse(call.args[2]) for call in calls if ast.unparse(call.func) == "Statement"}
        found |= named - {alias.name for node in imports for alias in node.names}
    return len(found)


def statements() -> list[Part]:
    """The .sql files, the longest first."""
    paths = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.sql")]
    parts = (Part(str(path.relative_to(ROOT)), len(path.read_text().splitlines())) for path in paths)
    return sorted(parts, key=lambda part: -part.lines)


def folders() -> int:
    """The number of top-level folders that contain files of the repository."""
    listed = subprocess.run(["git", "ls-files", "*/*"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return len({line.partition("/")[0] for line in listed.splitlines() if not line.startswith(".")})


def classes(*folders: str) -> list[Part]:
    """The classes by length, the longest first."""
    return _by_length(part for kind, part in _definitions(folders) if kind is ast.ClassDef)


def functions(*folders: str) -> list[Part]:
    """The functions and methods by length, the longest first."""
    return _by_length(part for kind, part in _definitions(folders) if kind is not ast.ClassDef)


@cache
def _definitions(folders: tuple[str, ...]) -> list[tuple[type[ast.AST], Part]]:
    """The classes, functions and methods of these folders with their kinds."""
    found: list[tuple[type[ast.AST], Part]] = []
    for path in modules(*folders):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                name = f"{path.relative_to(ROOT)}: {node.name}"
                found.append((type(node), Part(name, node.end_lineno - node.lineno + 1)))
    return found


def _by_length(parts: Iterable[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: -part.lines)


def naming(*words: str) -> int:
    """The number of modules of the product, without this module, that contain one of the words."""
    texts = (path.read_text() for path in modules(*PRODUCT) if path != Path(__file__))
    return sum(any(word in text for word in words) for text in texts)


def duplicates() -> int:
    """The number of identical runs of DUPLICATE_LINES lines in two or more files; each run counts once.

    Files that are generated from another file, and compared by a check, do not count.
    """
    places: defaultdict[bytes, list[tuple[Path, int]]] = defaultdict(list)
    for path in modules(*PRODUCT):
        lines = [line.strip() for line in path.read_text().splitlines()]
        if lines and lines[0].startswith(GENERATED):
            continue
        code = [line for line in lines if len(line) > 1 and not line.startswith(("#", "import ", "from "))]
        for number in range(len(code) - DUPLICATE_LINES + 1):
            run = "\n".join(code[number : number + DUPLICATE_LINES])
            places[hashlib.sha256(run.encode()).digest()].append((path, number))
    again = {place for found in places.values() if len({path for path, _ in found}) > 1 for place in found[1:]}
    # Overlapping runs are one longer run, and count once.
    return sum((path, number - 1) not in again for path, number in again)


def total(parts: list[Part]) -> int:
    """The sum of the lines of these parts."""
    return sum(part.lines for part in parts)


def _longest(parts: list[Part]) -> str:
    return f"{parts[0].lines} ({parts[0].name})"


FIGURES: dict[str, Callable[[], object]] = {
    "folders at the top": folders,
    "modules": lambda: sum(1 for _ in modules(*PRODUCT)),
    "lines of Python of the product, with bench, tools and examples": lambda: total(files(*PRODUCT)),
    "lines of the write and receive path, HTTP included": lambda: total(
        [part for part in files(*WRITE_AND_RECEIVE) if not part.name.startswith(APART)]
    ),
    "lines of Python that no script writes": lambda: total(written(*PRODUCT)),
    "modules that name left_out": lambda: naming("left_out"),
    "modules that know whether there are several cells": lambda: naming("OverCells", "placement.several"),
    "types of rows that no script writes": rows,
    "statements": lambda: len(statements()),
    "longest statement": lambda: _longest(statements()),
    "files above 200 lines": lambda: sum(part.lines > 200 for part in written(*PRODUCT)),
    "longest file": lambda: _longest(written(*PRODUCT)),
    "largest class": lambda: _longest(classes(*PRODUCT)),
    "longest function": lambda: _longest(functions(*PRODUCT)),
    f"runs of {DUPLICATE_LINES} lines that stand in two files, but for generated ones": duplicates,
    "benchmarks": lambda: (ROOT / "tools" / "bench" / "__main__.py").read_text().count(".CASES,"),
}


def print_all() -> None:
    """Prints a line for each figure."""
    for name, figure in FIGURES.items():
        print(f"{name}: {figure()}")
