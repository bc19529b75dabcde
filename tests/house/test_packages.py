"""What is missing on a machine skips tests, and is said once more at the end with the package that brings it."""

import pytest

from tests import packages


def test_the_last_lines_count_what_was_skipped_for_want_of_which_package() -> None:
    reasons = []
    for package in ("libfaketime", "chromium", "libfaketime"):
        with pytest.raises(pytest.skip.Exception) as skipped:
            packages.skip_for_want_of(package, "Something")
        reasons.append(f"('tests/a.py', 1, 'Skipped: {skipped.value}')")

    assert packages.closing_lines([*reasons, "('tests/a.py', 1, 'Skipped: only root has to')"]) == [
        "1 test was skipped for want of the package chromium.",
        "2 tests were skipped for want of the package libfaketime.",
    ]
