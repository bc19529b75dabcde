"""The law of SQL filters: each takes exactly the messages of which it is TRUE, by SQL's three values."""

import itertools
import json
import os
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from psycopg import sql

from delivery import filters
from tests.delivery_filters import strategies
from tests.delivery_filters.trees import (
    OPERATORS,
    Comparison,
    Junction,
    Literal,
    Negation,
    Properties,
    Tree,
    message,
)

# TRUE and FALSE have no order.
OPERATORS_AND_LITERALS = [
    *itertools.product(OPERATORS, (*strategies.NUMBERS, *strategies.TEXTS)),
    *itertools.product(("=", "<>"), (True, False)),
]
cases = st.tuples(strategies.trees, strategies.properties)


@pytest.fixture(scope="module")
def postgres() -> Iterator[psycopg.Connection]:
    """PostgreSQL, which has the same logic."""
    if "DATABASE_URL" not in os.environ:
        pytest.fail("No DATABASE_URL: start the tests with ./mq test, which brings servers of its own.")
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        yield connection


def takes(tree: Tree, properties: Properties) -> bool:
    """Whether the broker's filter takes the message."""
    wants = filters.parse({"sql": tree.written()})
    assert wants is not None
    return wants(message(properties))


@pytest.mark.parametrize(("operator", "literal"), OPERATORS_AND_LITERALS)
def test_a_comparison_takes_what_it_is_true_of_whatever_the_value(operator: str, literal: Literal) -> None:
    """Hypothesis joins comparisons; one alone is tried with everything."""
    for mirrored in (False, True):
        comparison = Comparison("price", operator, literal, mirrored)
        for tree in (comparison, Negation(comparison)):
            for value in strategies.VALUES:
                assert takes(tree, {"price": value}) is (tree.truth({"price": value}) is True), (tree.written(), value)


@given(cases)
@settings(max_examples=500)
def test_a_filter_takes_what_three_valued_logic_finds_true(case: tuple[Tree, Properties]) -> None:
    tree, properties = case

    assert takes(tree, properties) is (tree.truth(properties) is True)


@given(cases)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_filter_takes_what_postgresql_finds_true(postgres: psycopg.Connection, case: tuple[Tree, Properties]) -> None:
    tree, properties = case

    assert takes(tree, properties) is asked(postgres, tree, properties)


def test_the_law_catches_a_filter_that_takes_unknown_for_false() -> None:
    """The mutant: NOT as Python has it, where a comparison with a missing property is just not true."""

    def mutant(tree: Tree, properties: Properties) -> bool:
        if isinstance(tree, Negation):
            return not mutant(tree.part, properties)
        if isinstance(tree, Junction):
            left, right = mutant(tree.left, properties), mutant(tree.right, properties)
            return (left and right) if tree.word == "AND" else (left or right)
        return tree.truth(properties) is True

    tree, properties = find(cases, lambda case: mutant(*case) is not (case[0].truth(case[1]) is True))

    assert takes(tree, properties) is not mutant(tree, properties)


def asked(postgres: psycopg.Connection, tree: Tree, properties: Properties) -> bool:
    """Whether PostgreSQL finds the tree true of the properties as jsonb."""
    query = sql.SQL("SELECT ({}) IS TRUE FROM (SELECT {}::jsonb AS p) AS message")
    row = postgres.execute(query.format(tree.asked(), sql.Literal(json.dumps(properties)))).fetchone()
    assert row is not None
    return bool(row[0])
