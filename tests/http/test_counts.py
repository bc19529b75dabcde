"""How many web processes `--processes` means, on this machine and on others."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.web import counts
from mqbroker.web.counts import WITH_STANDBY, Count


@pytest.mark.parametrize("cores", [0.5, 1, 2, 3, 3.9])
def test_few_cores_are_left_to_one_process_with_a_standby(cores: float) -> None:
    assert counts.by_cores(cores) == WITH_STANDBY


@pytest.mark.parametrize("cores", [4, 64])
def test_from_four_cores_on_two_processes_serve(cores: float) -> None:
    assert counts.by_cores(cores) == Count(2, has_standby=True)


def test_a_process_that_may_use_one_core_of_many_counts_one() -> None:
    script = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from mqbroker.web import counts; "

    printed = subprocess.run(
        [sys.executable, "-c", script + "print(counts.cores() <= 1, counts.parse('auto'))"],
        cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    assert printed == f"True {WITH_STANDBY}\n"


@pytest.mark.parametrize(("text", "cores"), [("150000 100000\n", 1.5), ("max 100000\n", None)])
def test_the_quota_of_a_control_group_is_in_cores(text: str, cores: float | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(text)

    assert counts.quota_of(tmp_path) == cores


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0", "0 is too few: give a whole number from 1 on."),
        ("two", "two is no count of web processes: give auto, standby, or a whole number from 1 on."),
    ],
)
def test_what_is_no_count_is_refused_with_what_is_one(text: str, sentence: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        counts.parse(text)

    assert str(refused.value) == sentence
