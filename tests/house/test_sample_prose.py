"""Promises of tools/house/sample_prose.py: a seed names a sample, so two readers can speak about the same sentences."""

import ast
import functools

import pytest

from tools.house import sample_prose


def test_the_same_seed_prints_the_same_sample_of_60_explanations_30_sentences_and_20_refusals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of two rooms, read once for both samples: the passages of the whole product take eight seconds of CPU.
    monkeypatch.setattr(sample_prose, "PRODUCT", ("store", "transactions"))
    monkeypatch.setattr(sample_prose, "passages", functools.cache(sample_prose.passages))
    sample_prose.main(["--seed", "7"])
    first = capsys.readouterr().out
    sample_prose.main(["--seed", "7"])

    assert capsys.readouterr().out == first
    headings = [line for line in first.splitlines() if line.startswith("# ")]
    assert headings == ["# 60 docstrings and comments", "# 30 sentences of pages", "# 20 refusals"]


def test_neighbouring_lines_of_comments_are_one_comment() -> None:
    code = "# The queue has\n# two ends.\n\n# A limit.\nx = 1  # in bytes\ny = 2  # in seconds\n"

    assert [*sample_prose.comments(code)] == [
        (1, "The queue has two ends."),
        (4, "A limit."),
        (5, "in bytes"),
        (6, "in seconds"),
    ]


def test_sentences_of_a_page_come_with_their_lines_and_without_code() -> None:
    page = (
        "# Title\n\nA batch is\nwritten. It has an end.\n\n```sh\n./mq up\n```\n- An item.\n\n| a cell | a second |\n"
    )

    found = [(line, text) for line, text in sample_prose.sentences(page) if text]

    assert found == [
        (3, "A batch is written."),
        (4, "It has an end."),
        (9, "- An item."),
        (11, "a cell"),
        (11, "a second"),
    ]


def test_refusals_are_found_in_classes_below_refusal_and_show_their_expressions() -> None:
    tree = ast.parse(
        "FULL = 'The queue is full.'\nclass Busy(Refusal): ...\nclass Busier(Busy): ...\nclass Other(Exception): ...\n"
        "Busy(FULL)\nraise Busier(f'{name!r} waits.')\nraise Other('Not a refusal.')\n"
    )

    classes = sample_prose.refusal_classes([tree])

    assert [*sample_prose.refusals(tree, classes)] == [(5, "The queue is full."), (6, "{name!r} waits.")]
