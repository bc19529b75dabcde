"""`manage.py cells`: the databases of the installation, listed, added, opened, repaired and removed."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from access import audit
from access.audit import Signature
from cells import registry, stats
from store.errors import Refusal

COMMAND = Signature("command", "manage.py cells")
HEAD = ("cell", "topics", "epoch", "state")


class Command(BaseCommand):
    """Each subcommand may be repeated; `add` goes on where one that was killed has stopped."""

    # `./mq check` makes them: they import every page of the console, which a deployment need not wait for.
    requires_system_checks = ()

    help = "Lists, adds, opens, repairs and removes cells: the databases among which topics are divided."

    def add_arguments(self, parser: CommandParser) -> None:
        words = parser.add_subparsers(dest="word", required=True, metavar="list | add | open | sync | remove")
        words.add_parser("list", help="cells with their topics, and what is wrong with them")
        adding = words.add_parser("add", help="make an empty database a cell; or set the URL of a cell")
        adding.add_argument("name", help=registry.NAME_RULE)
        adding.add_argument("url", help="postgresql://user:password@host:port/database, or - to read it")
        opening = words.add_parser("open", help="have new topics lie in a cell from now on; the others stay")
        opening.add_argument("name")
        syncing = words.add_parser("sync", help="make a cell's copies of the configuration what the control has")
        syncing.add_argument("name", nargs="?", help="of one cell (default: of all)")
        removing = words.add_parser("remove", help="take a cell without topics out; its database is left as it is")
        removing.add_argument("name")

    def handle(self, *args: Any, word: str, name: str | None = None, url: str = "", **options: Any) -> None:
        try:
            self._run(word, name or "", url)
        except Refusal as refusal:
            raise CommandError(refusal.detail) from None
        except DatabaseError as problem:
            raise CommandError(f"A database failed: {' '.join(str(problem).split())}") from problem

    def _run(self, word: str, name: str, url: str) -> None:
        if word == "list":
            self._list()
        elif word == "add":
            # Every user of the machine can read arguments.
            self._add(name, sys.stdin.readline().strip() if url == "-" else url)
        elif word == "open":
            self._open(name)
        elif word == "sync":
            self._sync(name)
        else:
            self._remove(name)

    def _list(self) -> None:
        found = stats.read()
        rows = [
            (cell.name, str(cell.topics), "-" if cell.epoch is None else str(cell.epoch), _words(cell))
            for cell in found.cells
        ]
        widths = [max(len(row[column]) for row in (HEAD, *rows)) for column in range(len(HEAD))]
        for row in (HEAD, *rows):
            self.stdout.write("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        self.stdout.write(f"map: version {found.version}")

    def _add(self, name: str, url: str) -> None:
        cell = registry.join(name, url, COMMAND)
        self.stdout.write(f"{name} is cell {cell.id}. `cells open {name}` has new topics go there.")

    def _open(self, name: str) -> None:
        with audit.change(COMMAND, "cell.open", name):
            registry.open_cell(name)
        self.stdout.write(f"New topics go to {name}.")

    def _sync(self, name: str) -> None:
        for cell in [registry.find(name)] if name else registry.every():
            self.stdout.write(f"{cell.name}: {registry.repair(cell)} rows changed.")

    def _remove(self, name: str) -> None:
        with audit.change(COMMAND, "cell.remove", name):
            registry.remove(name)
        self.stdout.write(f"{name} is no cell any more. Its database is as it was, and running processes have left it.")


def _words(cell: stats.CellState) -> str:
    return cell.problem or ("takes new topics" if cell.is_open else "ready")
