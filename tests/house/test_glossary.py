"""Holds code, statements and pages to the words of docs/glossary.md."""

import re
from pathlib import Path

from tests.house.glossary import GLOSSARY, breaches, texts, unused
from tests.house.sources import Source

MEANING = re.compile(r"^\| (?P<words>[^|]+?) \| (?P<meaning>[^|]+?) \| (?P<others>[^|]*?) ?\|$", re.MULTILINE)


def test_only_words_of_the_glossary_are_used() -> None:
    found = [f"{text}:{breach}" for text in texts() for breach in breaches(text)]

    assert found == []


def test_a_word_has_one_meaning() -> None:
    rows = [row for row in MEANING.finditer(GLOSSARY.read_text(encoding="utf-8")) if row["words"] != "word"]
    words = [word.strip() for row in rows for word in row["words"].split(",") if set(word) != {"-"}]

    assert len(words) > 50
    assert sorted(words) == sorted(set(words))
    assert unused().keys().isdisjoint(words)


def test_the_checker_catches_a_refused_word_in_text_and_names() -> None:
    text = "# Told of it.\ndef judge_name(): ...\nclass GivenOut: ...\nreleased = retold = 1\nthose_of_them = 2\n"

    assert breaches(Source(Path("store/log.py"), text)) == [
        "1: Told: write read, sent, answered, configured",
        "2: judge: write validate, check",
        "3: Given_Out: write document, answer",
        "5: those_of_them: write the rows, the messages",
    ]
