"""A change of code that a model stands for is seen: the model is looked at, and the digest is written anew."""

import ast

import pytest

from tests.simulated.models import digests

ACCEPT = "Look whether the model still says the same, then: python -m tests.simulated.models.digests --write"


def test_no_function_and_no_statement_has_changed_without_its_model() -> None:
    assert list(digests.changes(digests.stored(), digests.digests())) == [], ACCEPT


@pytest.mark.parametrize("model", digests.MODELS)
def test_each_model_names_the_statements_and_the_functions_that_it_stands_for(model: str) -> None:
    found = digests.references(model)

    assert [one for one in found if one.endswith(".sql")] != []
    assert [one for one in found if "/" not in one] != []


def test_a_changed_digest_names_what_has_changed_and_the_model() -> None:
    before = {"firing": {"scheduling.cron.firing.decide": "a", "scheduling/cron/sql/take_firings.sql": "b"}}
    now = {"firing": {"scheduling.cron.firing.decide": "a", "scheduling/cron/sql/take_firings.sql": "c"}}

    assert list(digests.changes(before, now)) == [
        "scheduling/cron/sql/take_firings.sql is not what the model firing was written for"
    ]
    assert list(digests.changes({}, {"firing": {"scheduling.cron.firing.decide": "a"}})) == [
        "scheduling.cron.firing.decide is not what the model firing was written for"
    ]


@pytest.mark.parametrize(
    ("text", "is_alike"),
    [
        ('def f(x):\n    """Another docstring."""\n    return x  # a comment\n', True),
        ("def f(x):\n    return x\n", True),
        ("def f(x):\n    return x + 1\n", False),
        ("def f(x, y=0):\n    return x\n", False),
        ("async def f(x):\n    return x\n", False),
    ],
)
def test_docstrings_and_comments_of_a_function_count_for_nothing(text: str, is_alike: bool) -> None:
    known = digests.shape(ast.parse('def f(x):\n    """A docstring."""\n    return x\n'))

    assert (digests.shape(ast.parse(text)) == known) is is_alike


def test_comments_and_line_breaks_of_a_statement_count_for_nothing() -> None:
    text = "-- Reads a row.\nSELECT id\nFROM segment -- of all\nWHERE state = 'open'\n"

    assert digests.words(text) == "SELECT id FROM segment WHERE state = 'open'"
    assert digests.words(text) != digests.words(text.replace("'open'", "'closed'"))


@pytest.mark.parametrize(
    "reference", ["store/sql/no_such_statement.sql", "store.segments.no_such.roll", "nowhere.at.all"]
)
def test_a_model_that_names_what_is_not_there_is_refused(reference: str) -> None:
    with pytest.raises(digests.UnknownReference, match=reference):
        digests.digest(reference)
