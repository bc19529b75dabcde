"""Runs an installer of packages, and prints a line per second with its time, its progress and its current work.

`python installing.py <number of packages> <command> …`, by any Python, before any package is installed. The installer's
own lines are shown when it fails.
"""

import re
import subprocess
import sys
import threading
import time
from typing import IO

LINE_SECONDS = 1.0
# The first words of lines about current work: first the words of pip, then the words of uv.
WORKS = "Collecting|Downloading|Building|Requirement already satisfied:|Installing collected packages:|\\+"
AT_WORK = re.compile(rf"^\s*(?P<work>{WORKS}) (?P<what>\S+)")
BEGUN = {"Collecting", "Requirement already satisfied:", "+"}
SHOWN_LINES = 40


class Progress:
    """The progress of an installer, read from its lines."""

    def __init__(self, total: int) -> None:
        self.lines: list[str] = []
        self._total = total
        self._begun: set[str] = set()
        self._work = "begins"

    def listen(self, output: IO[str]) -> None:
        """Takes the lines of the installer until its end."""
        for line in output:
            self.lines.append(line)
            if found := AT_WORK.match(line):
                self._take(found, line)

    def _take(self, found: re.Match[str], line: str) -> None:
        if found["work"].startswith("Installing"):
            self._work = "writes them into .venv"
            return
        # A line of a lock file without the version, and without the comment that says which package needs it.
        package = re.split(r"[=<>;\[]", found["what"])[0]
        if found["work"] in BEGUN:
            self._begun.add(package)
        size = re.search(r"\(([\d.]+ ?\w+)\)", line)
        self._work = package + (f", {size[1]}" if size else "")

    def line(self, seconds: float) -> str:
        """The line to print when this number of seconds has passed."""
        return f"mq: {seconds:.0f} s, {min(len(self._begun), self._total)} of {self._total} packages: {self._work}"


def main(total: str, *command: str) -> int:
    progress, began = Progress(int(total)), time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as installer:
        assert installer.stdout is not None
        listening = threading.Thread(target=progress.listen, args=[installer.stdout], daemon=True)
        listening.start()
        while True:
            listening.join(LINE_SECONDS)
            if not listening.is_alive():
                break
            print(progress.line(time.monotonic() - began), file=sys.stderr, flush=True)
        status = installer.wait()
    if status:
        print("".join(progress.lines[-SHOWN_LINES:]), end="", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
