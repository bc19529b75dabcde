"""What the start of a command of Spark imports."""

import subprocess
import sys

from tests.analytics.conftest import ROOT


def test_a_report_starts_without_what_only_the_reading_of_a_database_needs() -> None:
    looks = "import sys, analytics.reports.job; print({'pandas', 'pyarrow.dataset'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", looks], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
