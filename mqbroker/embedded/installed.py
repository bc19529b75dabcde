"""The commands `mqbroker` and `mqb` of the wheel.

The wheel contains the tree of a checkout beside this module; the command runs it like `./mq`. The wheel has this file
as its only importable module, `mqbroker_command`. So the broker's packages (`store`, `access`, …) do not hide packages
of the same name in the environment of the installation. This module imports none of them.
"""

import os
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent / "tree"


def mqb() -> None:
    """Runs `mqbroker mqb`."""
    main("mqb")


def main(*command: str) -> None:
    """Runs `python -m mqbroker.embedded.cli` in the tree; paths are relative to the caller's folder.

    It ignores the caller's `PYTHONPATH`, as `./mq` does, because modules there could hide modules of the tree.
    """
    called_from = Path.cwd()
    os.environ["MQ_CALLED_FROM"] = str(called_from)
    os.environ["MQ_COMMAND"] = "mqbroker"
    os.environ.setdefault("MQBROKER_DATA_DIR", str(called_from / ".mqbroker"))
    os.environ.pop("PYTHONPATH", None)
    os.chdir(TREE)
    os.execv(sys.executable, [sys.executable, "-m", "mqbroker.embedded.cli", *command, *sys.argv[1:]])
