"""Makes an archive of Spark's Java classes, once per environment: later starts of Spark take half the time."""

import sys
from pathlib import Path

from mqbroker.embedded import commands, environment
from mqbroker.embedded.cli import foreground

# Where `./mq` notes what it has installed.
STAMPS = Path(sys.prefix) / ".mq"
COMMAND = commands.python("-m", "analytics.management.keep_classes")
KILLED = 128


def keep_once() -> None:
    """Makes the archive. A failed attempt prints its reason, and the next start tries again; Spark starts anyway."""
    stamp = STAMPS / "classes"
    if not STAMPS.exists() or stamp.exists():
        return
    print("mq: Keeping what Java reads of Spark; the next start skips this.", file=sys.stderr, flush=True)
    code = foreground.run(COMMAND, environment.common())
    if code > KILLED:
        sys.exit(code)
    if code == 0:
        stamp.touch()
