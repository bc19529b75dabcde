"""The system packages that some tests need: without one they are skipped, and the last lines of a run count them."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

import pytest

REASON = re.compile(r"install the package (?P<package>[\w.+-]+)")


def skip_for_want_of(package: str, what: str) -> NoReturn:
    """Skips a test that needs what Debian's package brings."""
    pytest.skip(f"{what} is not on this machine: install the package {package}")


def closing_lines(reasons: Iterable[str]) -> list[str]:
    """How many tests were skipped for want of which package, from the reasons of all that were skipped."""
    wanted = Counter(found["package"] for reason in reasons if (found := REASON.search(reason)))
    return [
        f"{number} {'test was' if number == 1 else 'tests were'} skipped for want of the package {package}."
        for package, number in sorted(wanted.items())
    ]
