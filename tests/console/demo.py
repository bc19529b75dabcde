"""Records pages of a running console as files that a browser opens without a server."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

# The rules of a style sheet or group by their places: the text of each, and the rules within it if it is a group.
Rules = dict[int, tuple[str, "Rules"]]
HERE = Path(__file__).parent
TIDY, STYLES = ((HERE / name).read_text() for name in ("recording.js", "styles.js"))
ELSEWHERE = "elsewhere.html"
# The time of the recorded hour, and the console's address, whichever they were.
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
ADDRESS = "https://mq.example.org"
NOTICE = """<!DOCTYPE html>
<html lang="en"><head><title>Not recorded</title><meta name="viewport" content="width=device-width, initial-scale=1.0">
<style>body { font: 1rem/1.5 sans-serif; margin: 4rem auto; max-width: 40rem; padding: 0 1rem }</style></head>
<body><main><h1>This page was not recorded</h1>
<p>The demo shows recorded pages of a console. Links, searches and actions that lead out of them end here.</p>
<p><code>./mq up</code> starts a broker whose console has all pages. <a href="index.html">Back to the overview</a></p>
</main></body></html>
"""


def record(page: Page, console: str, paths: Mapping[str, str], now: datetime, folder: Path) -> None:
    """Writes the pages of a console into a folder: `paths` has the path of each below /console/, by its file.

    `now` is the time at which the console has been filled; the recorded pages show NOON.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hrefs = {f"/console/{path}": file for file, path in paths.items()}
    given = {"hrefs": hrefs, "elsewhere": ELSEWHERE, "shift": (NOON - now) / timedelta(milliseconds=1)}
    sheets: list[Rules] = []
    for file, path in paths.items():
        page.goto(f"{console}/console/{path}", wait_until="networkidle")
        found = page.evaluate(STYLES, given)
        sheets += [{} for _ in found[len(sheets) :]]
        for sheet, rules in zip(sheets, found, strict=False):
            unite(sheet, rules)
        text = page.evaluate(TIDY, given)
        (folder / file).write_text(text.replace(console, ADDRESS).replace(console.partition("//")[2], ADDRESS[8:]))
    style = "\n".join(written(rules) for rules in sheets)
    (folder / "style.css").write_text(f"{style}\n")
    (folder / ELSEWHERE).write_text(NOTICE)


def unite(selection: Rules, rules: Iterable[tuple[int, str, Any]]) -> None:
    """Adds rules to a selection of the rules of a sheet or group."""
    for place, text, within in rules:
        _, inner = selection.setdefault(place, (text, {}))
        unite(inner, within or ())


def written(rules: Rules) -> str:
    """The text of a selection, in the order of the sheet."""
    ordered = (rules[place] for place in sorted(rules))
    return "\n".join(f"{text} {{\n{written(inner)}\n}}" if inner else text for text, inner in ordered)
