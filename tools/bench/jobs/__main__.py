"""Prepares the database of a queue, or is a process of its producers or consumers, until it is stopped.

python -m tools.bench.jobs MODULE prepare|produce|consume
"""

import importlib
import logging
import sys

if __name__ == "__main__":
    # Without this line, the log lines that a worker writes for each job would be measured, too.
    logging.disable(logging.WARNING)
    module, role = sys.argv[1:]
    getattr(importlib.import_module(f"tools.bench.jobs.{module}"), role)()
