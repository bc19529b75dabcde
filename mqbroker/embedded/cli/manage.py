"""Runs a Django management command on the data folder's database, which is started for it unless it runs."""

import argparse

from mqbroker.embedded import commands
from mqbroker.embedded.cli import database, foreground, options
from mqbroker.embedded.cli.settings import refuse_bad_settings
from mqbroker.embedded.preparation import Memory


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "mq manage",
        usage="mq manage [--data-dir FOLDER] command [options]",
        description=__doc__,
        epilog="mq manage help lists the commands, mq manage help <command> the options of one.",
        # Words after the command are its own, also a --help.
        add_help=words[:1] in (["-h"], ["--help"]),
        allow_abbrev=False,
    )
    options.add_data_folder(parser)
    given, command = parser.parse_known_args(words)
    refuse_bad_settings()
    Memory(given.folder.path / "postgres").forget()  # removed because the command may change tables
    with database.of(given.folder) as environment:
        return foreground.run(commands.manage(*command), environment)


def behind_folder(command: str, words: list[str]) -> list[str]:
    """Moves --data-dir, which may come first, to the front of the command. Returns the arguments of `./mq <command>`
    for `./mq
    manage`.
    """
    folder = words[:2] if words[:1] == ["--data-dir"] else []
    return [*folder, command, *words[len(folder) :]]
