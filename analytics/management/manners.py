"""Has an export or a report give way to other processes before it imports Django, as its words say.

The imports take most of a second of both processors: where they ran like any other program, beside 2,000 sends a second
a hundred of these waited for more than 5 ms.
"""

import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import NoReturn

from analytics.submit import COMMANDS, is_submitted

# With two, the p99 of senders is 1.6 times that of an idle machine, with one 1.2 times (tools/bench/RESULTS.md).
CORES = 1
NICENESS = 19
# The setting EXPORT_NICE, read here before there are settings.
VARIABLE = "MQBROKER_EXPORT_NICE"


class _Refused(Exception):
    """Words that Django refuses as well, with the usage of the whole command."""


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Refused(message)


def tasks(text: str) -> int:
    """A number of tasks."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text} is no number of tasks: give a whole number from 1 on.")
    return int(text)


def add_to(parser: ArgumentParser) -> None:
    """Adds the options that say how far a command gives way."""
    parser.add_argument(
        "--cores",
        type=tasks,
        default=CORES,
        metavar="N",
        help="how many tasks run at once where Spark runs here (default: %(default)s; 2 where no sender shares it)",
    )
    parser.add_argument(
        "--nice",
        type=int,
        choices=range(20),
        # As text, of which argparse makes the number; mqbroker.settings refuses a bad one.
        default=os.environ.get(VARIABLE, str(NICENESS)),
        metavar="N",
        help="by how much all of it gives way to other processes, on as many processors as --cores: 19 at most, 0: not "
        "at all (default: %(default)s)",
    )


def give_way(words: Sequence[str]) -> None:
    """Has the rest of the command of these words give way to others, unless spark-submit has started Spark by now."""
    if not words or words[0] not in COMMANDS or is_submitted(os.environ):
        return
    # Not at the top: other commands do without what it imports.
    from analytics.management import background

    parser = _Parser(add_help=False)
    add_to(parser)
    parser.add_argument("--master", default="")
    try:
        options, _ = parser.parse_known_args(words[1:])
    except _Refused:
        return
    background.enter(options.nice, 0 if options.master else options.cores)


BEGINNINGS = (give_way,)
