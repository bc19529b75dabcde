#!/usr/bin/env python
"""Django's command line: migrations, the shell and the broker's own management commands."""

import contextlib
import gc
import os
import signal
import sys

from mqbroker.environment.framework import DOORS
from store.process import doors


def main(words: list[str]) -> None:
    """Runs one command."""
    # Not at the top: a command that gives way to others does so before it imports Django.
    from django.core.management import execute_from_command_line

    from store.process import runtime

    with runtime.installed(runtime.Runtime()):
        execute_from_command_line(words)


if __name__ == "__main__":
    for begin in doors.added(doors.To.COMMAND_LINE, DOORS):
        begin(sys.argv[1:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    # What a command imports stays, and a collection with each 700 objects would go through it again and again.
    gc.set_threshold(50_000)
    try:
        main(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # What reads the output has what it wants, as in `… | head`: no error, and nothing more to flush at the end.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
