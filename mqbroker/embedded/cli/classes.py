"""Has Java keep the classes of Spark, once in each environment: its further starts take half of their time."""

import sys
from pathlib import Path

from mqbroker.embedded import commands, environment
from mqbroker.embedded.cli import foreground

# Where `./mq` notes what it has installed.
STAMPS = Path(sys.prefix) / ".mq"
COMMAND = commands.python("-m", "analytics.management.keep_classes")
KILLED = 128


def keep_once() -> None:
    """An attempt that failed has said why, and the next start makes another: Spark starts without the classes, too."""
    stamp = STAMPS / "classes"
    if not STAMPS.exists() or stamp.exists():
        return
    print("mq: Keeping what Java reads of Spark; the next start skips this.", file=sys.stderr, flush=True)
    code = foreground.run(COMMAND, environment.common())
    if code > KILLED:
        sys.exit(code)
    if code == 0:
        stamp.touch()
