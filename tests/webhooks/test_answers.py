"""Promises about answers: the headers and texts of a foreign server do no harm."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks.endpoint_answers import Answer, retry_after_seconds, sentence

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("86401", 86_400.0),
        ("9" * 5_000, 86_400.0),
        ("Mon, 05 Jan 2026 12:00:30 GMT", 30.0),
        ("Mon, 05 Jan 2026 12:00:30 -0000", 30.0),
        ("Mon, 05 Jan 2026 11:00:00 GMT", 0.0),
        ("Mon, 05 Jan 2099 12:00:00 GMT", 86_400.0),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_at_most_a_day(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOON) == seconds


@given(st.text())
def test_any_retry_after_is_read_or_ignored(header: str) -> None:
    assert 0 <= (retry_after_seconds(header, NOON) or 0) <= 86_400


@given(st.text(max_size=2_000))
def test_a_reason_is_one_printable_line_of_at_most_200_characters(text: str) -> None:
    line = sentence(text)

    assert len(line) <= 200
    assert line.isprintable()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        (" " * 300 + "late", "late"),
        ("no\x00 such\nhost", "no such host"),
    ],
)
def test_a_reason_is_cut_where_it_is_too_long_and_nowhere_else(text: str, line: str) -> None:
    assert sentence(text) == line


@pytest.mark.parametrize(
    ("status", "ok"), [(199, False), (200, True), (204, True), (299, True), (300, False), (302, False), (500, False)]
)
def test_only_a_whole_answer_with_a_2xx_status_is_ok(status: int, ok: bool) -> None:
    assert Answer("answered", True, "", 1.0, status).ok is ok
    assert not Answer("too_large", True, "", 1.0, status).ok
