"""A process of the broker that stops itself before the commit of its first stepwise write, and goes on when continued.

Prints the queue offset that its message was answered with.
"""

import os
import signal
import sys
import time

import django

# Does not fit into a pipelined batch.
BODY = "x" * (1100 * 1024)


def stop_before_the_first_commit() -> None:
    """Has this process stopped while it holds the locks of a stepwise write."""
    from store.commit.stepwise import StepwiseWriter
    from store.db.connections import Connection

    commit = StepwiseWriter._commit
    stopped = False

    async def stop_and_commit(self: StepwiseWriter, connection: Connection) -> None:
        nonlocal stopped
        if not stopped:
            stopped = True
            os.kill(os.getpid(), signal.SIGSTOP)
            # The signal may reach another thread first.
            time.sleep(0.1)  # noqa: ASYNC251  # the whole process is to stop
        await commit(self, connection)

    StepwiseWriter._commit = stop_and_commit  # type: ignore[method-assign]  # the stop is the test


def main(topic: str) -> None:
    django.setup()
    from store.db import event_loop
    from store.process import runtime
    from tests.store.keeper import sent

    runtime.install(runtime.Runtime())
    stop_before_the_first_commit()
    print(event_loop.run(sent(topic, BODY, queue_id=0), limit_seconds=60)["queue_offset"])


if __name__ == "__main__":
    main(*sys.argv[1:])
