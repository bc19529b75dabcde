"""`./mq up` on a machine that gives its processes no processor for a long time."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_up import KEY, Up

FROZEN_SECONDS = 65.0


@pytest.mark.long
def test_a_web_process_that_is_frozen_for_a_minute_is_waited_for(run_python: Run, tmp_path: Path) -> None:
    up = Up(run_python, tmp_path / "data folder")
    frozen = threading.Thread(target=freezes_web, args=(up,))
    frozen.start()

    up.start("--api-key", KEY)
    frozen.join()

    assert up.send() == 201
    assert up.process
    up.process.send_signal(signal.SIGTERM)
    _, said = up.process.communicate()
    assert said.count("Waiting for the web process, which runs and does not answer yet") >= 5


def freezes_web(up: Up) -> None:
    """Stops the web process as soon as it is written down, and lets it go on after FROZEN_SECONDS."""
    while "web" not in (pids := up.pids() if up.folder.processes.exists() else {}):
        time.sleep(0.01)
    os.kill(pids["web"], signal.SIGSTOP)
    time.sleep(FROZEN_SECONDS)
    os.kill(pids["web"], signal.SIGCONT)
