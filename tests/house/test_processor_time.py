"""What is said of the CPU time of a run is never the reason for which the run fails."""

import subprocess
import sys

import psutil

from tests.broker.processor_time import used_below, used_by_tree

LOOKS = 200
# Of a process that starts fifty others at a time, each of which ends at once.
STARTS_OTHERS = """
import os
while True:
    for _ in range(50):
        os.fork() or os._exit(0)
    for _ in range(50):
        os.wait()
"""


def test_processes_may_end_while_their_time_is_counted() -> None:
    started = subprocess.Popen([sys.executable, "-c", STARTS_OTHERS])
    try:
        used = [used_by_tree(psutil.Process(started.pid)) for _ in range(LOOKS)]
    finally:
        started.kill()
        started.wait()
    assert used[-1] > 0


def test_the_time_of_a_child_that_has_ended_is_its_parents() -> None:
    """Nothing is lost between two looks, however short the lives of the children are."""
    parent = "import os\nos.fork() or (sum(range(3_000_000)), os._exit(0))\nos.wait()\nprint(flush=True)\ninput()\n"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout
        started.stdout.readline()
        assert psutil.Process(started.pid).children() == []
        assert used_by_tree(psutil.Process(started.pid)) >= 0.02
        assert used_below(psutil.Process()) >= used_by_tree(psutil.Process(started.pid))
        started.communicate(b"\n")
