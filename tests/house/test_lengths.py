"""Holds files, classes and functions of the product to a length, with named exceptions that may only shrink."""

from collections.abc import Callable, Iterable, Mapping

import pytest

from tests.house import long_ones
from tools.house import figures
from tools.house.figures import PRODUCT, Part

FILE_LINES = 250
CLASS_LINES = 200
FUNCTION_LINES = 40


@pytest.mark.parametrize(
    ("parts_of", "limit", "excepted"),
    [
        (figures.written, FILE_LINES, long_ones.FILES),
        (figures.classes, CLASS_LINES, long_ones.CLASSES),
        (figures.functions, FUNCTION_LINES, long_ones.FUNCTIONS),
    ],
    ids=["files", "classes", "functions"],
)
def test_nothing_is_longer_than_its_limit_or_than_its_exception(
    parts_of: Callable[..., list[Part]], limit: int, excepted: Mapping[str, int]
) -> None:
    assert breaches(parts_of(*PRODUCT), limit, excepted) == []


def test_what_is_longer_than_its_limit_or_than_its_exception_is_named() -> None:
    parts = [Part("store/log.py", 251), Part("store/old.py", 280)]

    assert breaches(parts, 250, {"store/old.py": 279}) == [
        "store/log.py has 251 lines, the limit is 250",
        "store/old.py has 280 lines, its exception is 279",
    ]


def test_an_exception_shrinks_with_what_it_names() -> None:
    parts = [Part("store/old.py", 260), Part("store/mended.py", 120)]

    assert breaches(parts, 250, {"store/old.py": 280, "store/mended.py": 300, "store/gone.py": 300}) == [
        "store/old.py has 260 lines: lower its exception of 280",
        "store/mended.py keeps to the limit: take its exception away",
        "store/gone.py keeps to the limit: take its exception away",
    ]


def breaches(parts: Iterable[Part], limit: int, excepted: Mapping[str, int]) -> list[str]:
    """Parts above their limit, and exceptions that are larger than what they name."""
    long = {part.name: part.lines for part in parts if part.lines > limit}
    found = [f"{name} has {lines} lines, the limit is {limit}" for name, lines in long.items() if name not in excepted]
    for name, most in excepted.items():
        lines = long.get(name)
        if lines is None:
            found.append(f"{name} keeps to the limit: take its exception away")
        elif lines > most:
            found.append(f"{name} has {lines} lines, its exception is {most}")
        elif lines < most:
            found.append(f"{name} has {lines} lines: lower its exception of {most}")
    return found
