"""The page on reports: its lines of PySpark, pandas and DuckDB run on an export, and give what was exported."""

import re
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from tests.analytics.conftest import ROOT, Exported
from tests.analytics.past import Past

READING = (
    (ROOT / "docs" / "analytics.md").read_text(encoding="utf-8").partition("## Reading it")[2].partition("\n## ")[0]
)
BLOCKS = re.findall(r"```python\n(.*?)```", READING, re.DOTALL)


def printed(block: int, exported: Exported, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> str:
    """What a block of the page prints."""
    program = BLOCKS[block].replace("DIR", str(exported.folder)).replace("URL", exported.folder.as_uri())
    exec(program, {"spark": spark})
    return capsys.readouterr().out


@pytest.mark.parametrize("block", [0, 2, 3, 4])
def test_messages_are_counted_by_topic_without_their_copies(
    block: int, exported: Exported, past: Past, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(block, exported, spark, capsys)

    expected = Counter(row["topic"] for row in past.messages if row["copy_of"] is None)
    assert re.search(rf"orders\W+2026-03-01\W+{expected['orders']}\b", shown)


def test_the_slowest_end_is_found_by_what_gave_it(
    exported: Exported, past: Past, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(1, exported, spark, capsys)

    [resolved] = [row for row in past.transactions if row["remark"] == "paid in cash"]
    assert str(resolved["seconds_to_decision"]) in shown
    # Those without an end as well.
    assert sum(map(int, re.findall(r"\| +(\d+)\|", shown))) == len(past.transactions)
