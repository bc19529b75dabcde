"""Runs a command, and adopts the processes that it leaves behind, so that no processor time of a run is lost.

The system gives the processor time of an ended process to the process that waits for it. If a parent ends before its
child, such as a killed broker before its web processes, init waits for the child, and the time leaves the run's sum.
"""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36


def main(command: list[str]) -> int:
    """Waits for the command and for each process that loses its parent meanwhile. Returns the command's exit code."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The terminal sends Ctrl-C to the command itself. A handler, unlike SIG_IGN, is not inherited.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    ending = {signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    process = subprocess.Popen(command, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, ending))
    for number in ending:
        signal.signal(number, lambda number, frame: os.kill(process.pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)
    while (ended := os.wait())[0] != process.pid:
        pass
    code = os.waitstatus_to_exitcode(ended[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
