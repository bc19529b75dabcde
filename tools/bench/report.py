"""Prints measurements, as lines at once and as a table at the end, and keeps them as JSON."""

import json
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

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
    "postgres_of_other": "postgres beside",
    "control_asked": "at the control",
    "refused": "refused",
}
RATIOS = ("of_limit", "of_other", "cpu_of_other", "p50_ms", "p99_ms", "postgres_of_other", "control_asked")


@dataclass(frozen=True)
class Options:
    """The options of the command: length of the measurement, and what it runs beside."""

    beside: Path | None = None
    rounds: int = 5
    seconds: float = 5.0
    cases: tuple[str, ...] = ()
    exported: int = 100_000
    processes: str = "auto"


@dataclass
class Report:
    """The figures of one benchmark."""

    name: str
    options: Options = field(default_factory=Options)
    lines: dict[str, dict[str, float]] = field(default_factory=dict)
    rounds: dict[tuple[str, str], list[Figures]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def line(self, what: str, figures: dict[str, float]) -> None:
        """Prints and keeps one line of figures."""
        self.lines[what] = figures
        print(f"{what}: " + "  ".join(f"{name} {figure:,.2f}" for name, figure in figures.items()), flush=True)

    def fact(self, name: str, value: str) -> None:
        """Prints and keeps a condition of the figures."""
        self.facts[name] = value
        print(f"{name}: {value}", flush=True)

    def progress(self, what: str) -> None:
        """Prints what is measured next."""
        print(f"   {what}", file=sys.stderr, flush=True)

    def measured(self, case: str, side: str, figures: Figures) -> None:
        """Keeps one round of a case."""
        self.rounds.setdefault((case, side), []).append(figures)

    def table(self) -> None:
        """Prints the medians of all rounds, a row for each case and side."""
        rows = {of: medians(rounds).known() for of, rounds in self.rounds.items()}
        used = [name for name in HEADINGS if any(name in row for row in rows.values())]
        cells = [["case", "of", *(HEADINGS[name] for name in used)]]
        cells += [[*of, *(_shown(name, row.get(name)) for name in used)] for of, row in rows.items()]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            print(
                "  ".join(
                    _aligned(cell, width, column) for column, (cell, width) in enumerate(zip(row, widths, strict=True))
                )
            )
        self.lines |= {" | ".join(of): row for of, row in rows.items()}

    def content(self) -> dict[str, object]:
        """All figures and their conditions, for JSON: medians and single rounds."""
        rounds = {" | ".join(of): [one.known() for one in rounds] for of, rounds in self.rounds.items()}
        return {"benchmark": self.name, "facts": self.facts, "figures": self.lines, "rounds": rounds}

    def keep(self) -> None:
        """Writes the content to bench/results/, which git ignores."""
        RESULTS.mkdir(exist_ok=True)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        (RESULTS / f"{self.name}-{stamp}.json").write_text(json.dumps(self.content(), indent=1))


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name in RATIOS:
        return f"{value:,.2f}"
    return f"{value:,.0f}"


def _aligned(cell: str, width: int, column: int) -> str:
    """Names to the left, figures to the right."""
    return cell.ljust(width) if column < 2 else cell.rjust(width)
