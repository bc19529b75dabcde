"""Prints what was measured, a line each, and keeps it as JSON beside."""

import json
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


class Report:
    """The figures of one benchmark."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[str, dict[str, float]] = {}

    def line(self, what: str, figures: dict[str, float]) -> None:
        """Prints and keeps one line of figures."""
        self.lines[what] = figures
        print(f"{what}: " + "  ".join(f"{name} {figure:,.2f}" for name, figure in figures.items()), flush=True)

    def keep(self) -> None:
        """Writes the lines to bench/results/, which git ignores."""
        RESULTS.mkdir(exist_ok=True)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        (RESULTS / f"{self.name}-{stamp}.json").write_text(json.dumps(self.lines, indent=1))
