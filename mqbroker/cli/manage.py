"""Runs a Django management command on the data folder's database, which is started for it when nobody runs it."""

from mqbroker.cli import database, foreground, options
from mqbroker.cli.settings import refuse_bad_settings
from mqbroker.embedded import commands
from mqbroker.embedded.preparation import Memory


def main(words: list[str]) -> int:
    refuse_bad_settings()
    folder = options.default_folder()
    Memory(folder.path / "postgres").forget()  # the command may be one that changes tables
    with database.of(folder) as environment:
        return foreground.run(commands.manage(*words), environment)
