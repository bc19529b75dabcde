"""Lowers the priority of an export or report before Django is imported, as the command line asks.

The imports take most of a second on two processors. At normal priority, beside 2,000 sends per second, they delayed
about a hundred sends by more than 5 ms.
"""

import os
from argparse import ArgumentError, ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

from analytics.submit import COMMANDS, is_submitted

# The tasks at once by default. With 2 tasks the p99 of senders is 1.6 times as high as on an idle machine, with 1 task
# 1.2 times (tools/bench/RESULTS.md).
CORES = 1
NICENESS = 19
# The setting EXPORT_NICE, which is needed here before the settings are loaded.
VARIABLE = "MQBROKER_EXPORT_NICE"


def tasks(text: str) -> int:
    """A number of tasks that run at once."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text} is no number of tasks: give a whole number from 1 on.")
    return int(text)


def add_to(parser: ArgumentParser) -> None:
    """Adds the options that set how far a command lowers its priority."""
    parser.add_argument(
        "--cores",
        type=tasks,
        default=CORES,
        metavar="N",
        help="the number of tasks at once if Spark runs on this machine (default: %(default)s; 2 if no sender shares "
        "the machine)",
    )
    parser.add_argument(
        "--nice",
        type=int,
        choices=range(20),
        # Text, which argparse converts to a number; mqbroker.settings refuses an invalid value.
        default=os.environ.get(VARIABLE, str(NICENESS)),
        metavar="N",
        help="the nice value of all its processes, on as many processors as --cores: 0 to 19 (default: %(default)s)",
    )


def give_way(words: Sequence[str]) -> None:
    """Lowers the priority of the command with these arguments, unless spark-submit has already started Spark."""
    if not words or words[0] not in COMMANDS or is_submitted(os.environ):
        return
    # Imported here, because other commands do not need its imports.
    from analytics.management import background

    parser = ArgumentParser(add_help=False, exit_on_error=False)
    add_to(parser)
    parser.add_argument("--master", default="")
    try:
        options, _ = parser.parse_known_args(words[1:])
    except ArgumentError:
        # Django refuses the arguments too, and prints the whole usage.
        return
    background.enter(options.nice, 0 if options.master else options.cores)


BEGINNINGS = (give_way,)
