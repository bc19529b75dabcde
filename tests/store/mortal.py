"""Processes of the broker that maintain segments and are killed: each one statement later than the one before it.

Prints how many were killed until one came through.
"""

import os
import signal
import sys
from typing import Any

import django
import psycopg

MAX_LIVES = 100


def die_at(statement_number: int) -> None:
    """Has this process killed when it is about to send its so-manieth statement."""
    execute = psycopg.AsyncCursor.execute
    sent = 0

    async def execute_or_die(self: psycopg.AsyncCursor[Any], *given: Any, **options: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == statement_number:
            os.kill(os.getpid(), signal.SIGKILL)
        return await execute(self, *given, **options)

    psycopg.AsyncCursor.execute = execute_or_die  # type: ignore[method-assign]  # the death is the test


def live(statement_number: int) -> bool:
    """Whether a process survives the work with this death before it."""
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) == 0
    die_at(statement_number)
    from store.db import event_loop
    from store.process import runtime
    from tests.store.keeper import dropped, rolled

    runtime.install(runtime.Runtime())
    event_loop.run(dropped(0), limit_seconds=60)
    event_loop.run(rolled(), limit_seconds=60)
    os._exit(0)


def main() -> None:
    django.setup()
    print(next(number for number in range(1, MAX_LIVES) if live(number)) - 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
