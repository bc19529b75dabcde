"""Plants faults in the product, one at a time, and notes which of them the tests catch.

A seed chooses the faults: inverted comparisons, removed guards, exchanged steps, dropped clauses of statements. Each
fault is planted in a copy of the last commit, in which the tests of its app run, and then all other tests, until a test
fails. FILE has a line of JSON for each fault, with the test that caught it; a second run continues the first one.
"""

import argparse
import ast
import contextlib
import json
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from mqbroker.embedded.commands import ROOT

# The code that a message runs through, and the doors.
PLACES = (
    "access", "delivery", "mqbroker/api", "scheduling", "store", "transactions",
    "webhooks", "mqbroker/wire", "console/cells", "console/actions",
)  # fmt: skip
# For a folder of code, the folders of tests that run first; by default the folder of the same name.
TESTS = {
    "delivery": ("delivery", "delivery_filters", "push"),
    "mqbroker/api": ("control", "http"),
    "scheduling": ("scheduling", "schedules", "store", "transactions"),
    "mqbroker/wire": ("http",),
    "console/cells": ("cells", "moves"),
    "console/actions": ("actions",),
}
TURNED: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
# A fault that makes a test wait for ever counts as caught after this time.
TEST_SECONDS = 180
ENDS = (ast.Raise, ast.Return, ast.Continue)
CLAUSE = re.compile(r"^\s+AND .*$|\bFOR UPDATE(?: OF \w+)?(?: SKIP LOCKED)?|^\s*ORDER BY .*$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A fault: a range of a file, and the text that replaces the range."""

    path: str
    kind: str
    line: int
    begin: int
    end: int
    text: str


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the number that chooses the faults (default: 1)")
    parser.add_argument("--count", type=int, default=120, help="the number of faults (default: 120)")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="the file of the outcomes, a line each")
    parser.add_argument("--near", action="store_true", help="run the tests of the app alone, and no others behind them")
    parser.add_argument("--all", action="store_true", help="run each form of a promise, as ./mq test --all does")
    given = parser.parse_args(words)
    chosen = choose(given.seed, given.count)
    known = outcomes(given.to)
    with copied() as copy:
        for number, mutant in enumerate(chosen, 1):
            if key(asdict(mutant)) in known:
                continue
            caught = caught_by(mutant, copy, is_near=given.near, options=["--all"] if given.all else [])
            with given.to.open("a") as opened:
                opened.write(json.dumps({**asdict(mutant), "caught_by": caught}) + "\n")
            print(
                f"{number} of {len(chosen)}: {mutant.kind} {mutant.path}:{mutant.line}: {caught or 'MISSED'}",
                flush=True,
            )
    found = outcomes(given.to).values()
    print(f"{sum(map(bool, found))} of {len(found)} faults were caught.")
    return 0


def choose(seed: int, count: int) -> list[Mutant]:
    """A choice of faults from all files, with the same number of each kind."""
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in sorted(candidates(), key=lambda each: (each.path, each.begin, each.kind)):
        by_kind.setdefault(mutant.kind, []).append(mutant)
    chance = random.Random(seed)
    for mutants in by_kind.values():
        chance.shuffle(mutants)
    in_turns = [mutants[turn] for turn in range(count) for mutants in by_kind.values() if turn < len(mutants)]
    return in_turns[:count]


def candidates() -> Iterator[Mutant]:
    """All faults that can be planted in the code of PLACES."""
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*.py")):
            if "migrations" not in path.parts:
                yield from of_python(path)
        for path in sorted((ROOT / place).rglob("*.sql")):
            text = path.read_text()
            for found in CLAUSE.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                yield Mutant(str(path.relative_to(ROOT)), "clause dropped", line, *found.span(), "")


def of_python(path: Path) -> Iterator[Mutant]:
    """The faults of a module."""
    text = path.read_text()
    starts = [0]
    for row in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))

    def place(row: int, column: int) -> int:
        # Columns are counted in bytes.
        return starts[row - 1] + len(text[starts[row - 1] : starts[row]].encode()[:column].decode())

    def span(node: ast.stmt | ast.expr) -> tuple[int, int]:
        return place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)

    name = str(path.relative_to(ROOT))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in TURNED:
            begin, end = span(node.left)[1], span(node.comparators[0])[0]
            # Nothing but the operator is between the two operands.
            if re.fullmatch(r" [a-z=<>! ]+ ", text[begin:end]):
                turned = f" {TURNED[type(node.ops[0])]} "
                yield Mutant(name, "comparison turned", node.lineno, begin, end, turned)
        elif isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ENDS):
            yield Mutant(name, "guard taken out", node.lineno, *span(node.test), "False")
        for first, second in steps(node):
            (begin, middle), (then, end) = span(first), span(second)
            moved = text[then:end] + text[middle:then] + text[begin:middle]
            yield Mutant(name, "await moved", first.lineno, begin, end, moved)


def steps(node: ast.AST) -> Iterator[tuple[ast.Expr, ast.Expr]]:
    """Each awaited step of a body, and the step after it."""
    body = getattr(node, "body", None)
    for first, second in pairwise(body) if isinstance(body, list) else ():
        is_awaited = isinstance(first, ast.Expr) and isinstance(first.value, ast.Await)
        if is_awaited and isinstance(second, ast.Expr):
            yield first, second


def outcomes(file: Path) -> dict[str, str | None]:
    """The test that caught each fault of an earlier run; None: no test did."""
    rows = [json.loads(row) for row in file.read_text().splitlines()] if file.exists() else []
    return {key(row): row["caught_by"] for row in rows}


def key(row: dict[str, object]) -> str:
    return f"{row['path']}:{row['line']}:{row['begin']}:{row['kind']}"


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """A copy of the last commit, with the environment of this checkout."""
    with tempfile.TemporaryDirectory(prefix="mqmutants-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, "checkout")
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(copy)], check=True)
        (copy / ".venv").symlink_to(ROOT / ".venv")
        yield copy


def caught_by(mutant: Mutant, copy: Path, *, is_near: bool, options: list[str]) -> str | None:
    """The first test that fails with the fault in place; None: all pass."""
    file = copy / mutant.path
    whole = file.read_text()
    file.write_text(whole[: mutant.begin] + mutant.text + whole[mutant.end :])
    try:
        near = [folder for folder in near_folders(mutant.path) if (copy / folder).exists()]
        return (first_failure(copy, [*near, *options]) if near else None) or (
            None if is_near else first_failure(copy, options)
        )
    finally:
        file.write_text(whole)


def near_folders(path: str) -> list[str]:
    """The folders of tests that run first for a file."""
    place = next(place for place in PLACES if path.startswith(f"{place}/"))
    return [f"tests/{folder}" for folder in TESTS.get(place, (place,))]


def first_failure(copy: Path, words: list[str]) -> str | None:
    """The first test that fails; None: none does."""
    command = ["./mq", "test", "-x", "-q", "-o", f"timeout={TEST_SECONDS}", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else f"pytest ended by {done.returncode}"
