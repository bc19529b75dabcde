"""Prints measurements, a line or the table of a case as soon as it is measured, and keeps them as JSON."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tools.bench.checkout import OTHER, Checkout
from tools.bench.figures import Figures, medians

RESULTS = Path(__file__).parent / "results"
HEADINGS = {
    "per_second": "per second",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "web_cpu_us": "web µs",
    "postgres_cpu_us": "postgres µs",
    "wal_bytes": "WAL bytes",
    "load_cpu_us": "load µs",
    "of_limit": "of the limit",
    "of_other": "beside",
    "cpu_of_other": "beside by CPU",
    "refused": "refused",
}
RATIOS = ("of_limit", "of_other", "cpu_of_other", "p50_ms", "p99_ms")


@dataclass(frozen=True)
class Options:
    """The options of the command: the length and size of a measurement, and the other checkout."""

    beside: Path | None = None
    rounds: int = 5
    seconds: float = 5.0
    processes: str = "auto"
    minutes: int = 15
    messages: int | None = None

    def sides(self) -> dict[str, Checkout]:
        """This checkout, and the other one if it is given."""
        other = {} if self.beside is None else {OTHER: Checkout(self.beside)}
        return {"ours": Checkout(), **other}


@dataclass
class Report:
    """The figures of one benchmark. `keep` is called after each line and each case, to write what is known by then."""

    name: str
    options: Options = field(default_factory=Options)
    keep: Callable[[], None] = lambda: None
    lines: dict[str, dict[str, float]] = field(default_factory=dict)
    rounds: dict[tuple[str, str], list[Figures]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def line(self, what: str, figures: dict[str, float]) -> None:
        """Prints and saves one line of figures."""
        self.lines[what] = figures
        self.keep()
        print(f"{what}: " + "  ".join(f"{name} {figure:,.2f}" for name, figure in figures.items()), flush=True)

    def fact(self, name: str, value: str) -> None:
        """Prints and saves a condition under which the figures were measured."""
        self.facts[name] = value
        print(f"{name}: {value}", flush=True)

    def progress(self, what: str) -> None:
        """Prints a line about the next measurement."""
        print(f"   {what}", file=sys.stderr, flush=True)

    def measured(self, case: str, side: str, figures: Figures) -> None:
        """Saves the figures of one round of a case."""
        self.rounds.setdefault((case, side), []).append(figures)

    def ended(self, case: str) -> None:
        """Prints the medians of a case's rounds, a row for each side."""
        rows = {side: medians(rounds).known() for (of, side), rounds in self.rounds.items() if of == case}
        self.lines |= {f"{case} | {side}": row for side, row in rows.items()}
        self.keep()
        used = [name for name in HEADINGS if any(name in row for row in rows.values())]
        cells = [[case, *(HEADINGS[name] for name in used)]]
        cells += [[side, *(_shown(name, row.get(name)) for name in used)] for side, row in rows.items()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for name, *figures in cells:
            print("  ".join([name.ljust(widths[0]), *map(str.rjust, figures, widths[1:])]), flush=True)

    def content(self) -> dict[str, object]:
        """All figures and conditions, for JSON: medians and single rounds."""
        rounds = {" | ".join(of): [one.known() for one in rounds] for of, rounds in self.rounds.items()}
        return {"benchmark": self.name, "facts": self.facts, "figures": self.lines, "rounds": rounds}


# The cases of a benchmark by name; each measures itself and prints its figures.
Cases = Mapping[str, Callable[[Report], None]]


class Keeping:
    """Keeps all reports of a command: each in bench/results/, which git ignores, and all of them in a file."""

    def __init__(self, options: Options, file: Path | None) -> None:
        self.options = options
        self._file = file
        self._reports: list[Report] = []
        self._stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        RESULTS.mkdir(exist_ok=True)

    def report(self, name: str) -> Report:
        """Begins the report of the next benchmark."""
        self._reports.append(Report(name, self.options, self.write))
        return self._reports[-1]

    def write(self) -> None:
        """Writes the figures of all reports so far to the file."""
        last = self._reports[-1]
        (RESULTS / f"{last.name}-{self._stamp}.json").write_text(json.dumps(last.content(), indent=1))
        if self._file is not None:
            # A reader that opens the file meanwhile finds a complete file.
            draft = self._file.with_name(f"{self._file.name}.draft")
            draft.write_text(json.dumps([report.content() for report in self._reports], indent=1))
            draft.replace(self._file)


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name in RATIOS:
        return f"{value:,.2f}"
    return f"{value:,.0f}"
