"""The page of the reports, and the list of them that it is made from."""

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pyarrow

from analytics.files.place import Local
from analytics.reports import page
from analytics.reports.catalog import REPORTS, Report
from analytics.reports.tables import Export
from tests.analytics.exports import nothing
from tests.analytics.frames import Frames, rows


class Loads(HTMLParser):
    """The elements of a page, and what would load something or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        for name, value in attrs:
            leads_away = name == "href" and not (value or "").startswith("#")
            if leads_away or name in ("src", "srcset", "data") or name.startswith("on"):
                self.loads.append(f"{tag} {name}={value}")


def test_the_page_loads_nothing_and_escapes_every_text() -> None:
    wicked = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
    text = pyarrow.table({name: [wicked] for name in ("remark", "transactions")}).set_column(
        1, "transactions", pyarrow.array([3])
    )
    reports = {one.name: text if one.name == "discards" else pyarrow.table({one.bar: []}) for one in REPORTS}
    found = page.of(export(wicked), reports)

    read = Loads(found)
    assert read.loads == []
    assert {"script", "img", "link", "iframe"}.isdisjoint(read.elements)
    assert read.elements.count("rect") == 1
    assert "url(" not in found
    assert "<h1>Reports of 2026-03-01 12:00:00 UTC</h1>" in found
    assert found.count("No rows.") == len(REPORTS) - 1


def test_the_page_shows_the_first_rows_and_says_how_many_there_are() -> None:
    many = pyarrow.table({"topic": [f"topic {number}" for number in range(1201)], "timers": [None, *range(1200)]})
    reports = {one.name: many if one.name == "timers" else pyarrow.table({one.bar: []}) for one in REPORTS}

    found = page.of(export("orders"), reports)

    assert "The first 200 of 1,201 rows." in found
    assert "topic 199<" in found
    assert "topic 200<" not in found
    assert '<td>topic 0</td><td class="none">–</td>' in found


def test_the_page_draws_messages_and_transactions_over_time() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    hours = [noon, noon, noon + timedelta(hours=1)]
    volumes = pyarrow.table(
        {"hour": hours, "topic": ["a", "<b>", "a"], "messages": [30, 10, 20], "body_bytes": [3, 1, 2]}
    )
    reports = {one.name: volumes if one.name == "volumes" else pyarrow.table({one.bar: []}) for one in REPORTS}

    found = page.of(export("orders"), reports)

    assert Loads(found).elements.count("path") == 2
    assert "40 in the highest hour" in found
    assert "<title>03-01 12:00: messages 40</title>" in found
    assert "<title>03-01 13:00: messages 20</title>" in found
    assert "Transactions by hour" not in found


def test_every_report_of_an_export_without_rows_is_empty_and_has_the_columns_that_order_it(frames: Frames) -> None:
    made = {report.name: report.make(frames.empty()) for report in REPORTS}

    assert {name: rows(found) for name, found in made.items()} == {name: [] for name in made}
    assert {one.name: named(one) - set(made[one.name].columns) for one in REPORTS} == {name: set() for name in made}


def export(database: str) -> list[Export]:
    """An export without a row."""
    return [Export("", Local(Path()), nothing(database))]


def named(report: Report) -> set[str]:
    """The columns by which a report is ordered and drawn."""
    return {report.bar, *(column.removeprefix("-") for column in report.order)}
