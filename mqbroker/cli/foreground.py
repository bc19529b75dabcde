"""Runs a command in the user's terminal and passes on how it ended."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

from mqbroker.embedded.commands import ROOT


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Waits for the command; Ctrl-C is for it alone, SIGTERM is handed on. Returns its exit code as a shell would."""
    with subprocess.Popen(command, env=environment, cwd=ROOT) as process:

        def hand_on(number: int, frame: FrameType | None) -> None:
            process.send_signal(number)

        earlier = {
            signal.SIGINT: signal.signal(signal.SIGINT, lambda number, frame: None),
            signal.SIGTERM: signal.signal(signal.SIGTERM, hand_on),
        }
        try:
            code = process.wait()
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)
    return code if code >= 0 else 128 - code
