"""`manage.py cells`: adds, opens, removes and lists cells, and moves topics between them."""

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from access import audit
from access.audit import Signature
from console.cells import homes, moves, moving, plans, registry, stats
from console.cells.plans import Plan
from store.errors import Refusal
from store.naming import names

COMMAND = Signature("command", "manage.py cells")
HEAD = ("cell", "topics", "messages/s", "epoch", "standby", "state")
RATE_SECONDS = 1.0
# Private servers and their standbys belong to `./mq`: mqbroker/embedded/cli/cells.py runs them.
IS_PRIVATE = bool(settings.DATA_DIR)
STANDBY = "standby"
WORDS = "list | add | open | close | sync | remove | topics | split | move | resume | undo"
HOME_FORM = f"any name of {names.rule()}, such as shop".replace("%", "%%")
HOME_RULE = "the home that topics share, or the name of a topic that has none"


class Command(BaseCommand):
    """Each subcommand may be repeated; `add` and `resume` continue where a killed run has stopped."""

    # `./mq check` runs Django's checks. They import every page of the console, for which a deployment need not wait.
    requires_system_checks = ()

    help = "Lists, adds, opens, repairs, removes, splits and moves cells: the databases that topics are divided among."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """The parser, whose usage shows the command as it was typed."""
        return super().create_parser("mq" if IS_PRIVATE else prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        metavar = f"{WORDS} | {STANDBY}" if IS_PRIVATE else WORDS
        words = parser.add_subparsers(dest="word", required=True, metavar=metavar)
        if IS_PRIVATE:
            words.add_parser(STANDBY, help="copy the private PostgreSQL, and run the copy as a standby until Ctrl-C")
        words.add_parser("list", help="show the cells with their topics and their problems")
        adding = words.add_parser("add", help="make an empty database a cell; or set the URL of a cell")
        adding.add_argument("name", help=registry.NAME_RULE)
        adding.add_argument("url", help="postgresql://user:password@host:port/database, or - to read it")
        opening = words.add_parser("open", help="put new topics into a cell from now on; existing topics stay")
        opening.add_argument("name")
        closing = words.add_parser("close", help="put no more new topics into a cell, but into the control again")
        closing.add_argument("name")
        syncing = words.add_parser("sync", help="write the control's configuration into a cell's copies again")
        syncing.add_argument("name", nargs="?", help="the cell (default: all cells)")
        removing = words.add_parser("remove", help="remove a cell without topics; its database stays as it is")
        removing.add_argument("name")
        topics = words.add_parser("topics", help="give topics a home: its topics are in one cell, and move together")
        topics.add_argument("what", choices=["home"])
        topics.add_argument("name", metavar="HOME", help=HOME_FORM)
        topics.add_argument("topics", nargs="+", metavar="TOPIC")
        _add_moves(words)

    def handle(self, *args: Any, word: str, **given: Any) -> None:
        try:
            getattr(self, f"_{word}")(**given)
        except Refusal as refusal:
            raise CommandError(refusal.detail) from None
        except DatabaseError as problem:
            raise CommandError(f"A database failed: {' '.join(str(problem).split())}") from problem

    def _list(self, **_: Any) -> None:
        found = stats.read(RATE_SECONDS)
        rows = [_row(cell) for cell in found.cells]
        widths = [max(len(row[column]) for row in (HEAD, *rows)) for column in range(len(HEAD))]
        for row in (HEAD, *rows):
            self.stdout.write("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        if found.move is not None:
            self.stdout.write(f"move: {found.move.sentence}")
        self.stdout.write(f"map: version {found.version}")

    def _add(self, name: str, url: str, **_: Any) -> None:
        cell = registry.join(name, _read(url), COMMAND)
        self.stdout.write(f"{name} is cell {cell.id}. `cells open {name}` has new topics go there.")

    def _open(self, name: str, **_: Any) -> None:
        with audit.change(COMMAND, "cell.open", name):
            registry.open_cell(name)
        self.stdout.write(f"New topics go to {name}.")

    def _close(self, name: str, **_: Any) -> None:
        with audit.change(COMMAND, "cell.close", name):
            registry.close_cell(name)
        self.stdout.write(f"No new topics go to {name}.")

    def _sync(self, name: str | None, **_: Any) -> None:
        for cell in [registry.find(name)] if name else registry.every():
            self.stdout.write(f"{cell.name}: {registry.repair(cell)} rows changed.")

    def _remove(self, name: str, **_: Any) -> None:
        with audit.change(COMMAND, "cell.remove", name):
            registry.remove(name)
        self.stdout.write(f"{name} is no cell any more. Its database is as it was, and running processes have left it.")

    def _topics(self, name: str, topics: list[str], **_: Any) -> None:
        found = homes.set_home(name, topics, COMMAND)
        self.stdout.write(f"{name}: {', '.join(topic.name for topic in found)}.")

    def _split(self, name: str, into: str, homes: list[str], standby: str, **given: Any) -> None:
        self._go(plans.split(name, into, _read(standby), homes, by_hand=given["promote_by_hand"]), given["dry_run"])

    def _move(self, name: str, standby: str, **given: Any) -> None:
        self._go(plans.whole(name, _read(standby), by_hand=given["promote_by_hand"]), given["dry_run"])

    def _go(self, plan: Plan, dry_run: bool) -> None:
        for line in _described(plan):
            self.stdout.write(line)
        if not dry_run:
            self._finish(moving.Run(moves.begin(plan.move, COMMAND), COMMAND, self._say))

    def _standby(self, **_: Any) -> None:
        raise CommandError("A standby of the private PostgreSQL is run by `./mq cells standby CELL --to FOLDER`.")

    def _resume(self, **_: Any) -> None:
        self._finish(moving.taken_over(COMMAND, self._say))

    def _undo(self, **_: Any) -> None:
        with moving.taken_over(COMMAND, self._say) as run:
            run.take_back()
        self.stdout.write(
            f"{run.move.source_name} has its topics as before. The promoted database is no cell: drop it."
        )

    def _finish(self, run: moving.Run) -> None:
        with run:
            run.finish()
        pause = "" if run.move.pause_seconds is None else f" It took no writes for {run.move.pause_seconds:.2f} s."
        self.stdout.write(f"{run.move}: done.{pause}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _add_moves(words: Any) -> None:
    splitting = words.add_parser("split", help="move homes of a cell into a new cell, the promoted standby")
    splitting.add_argument("name")
    splitting.add_argument("--into", required=True, metavar="CELL", help="the name of the new cell")
    splitting.add_argument(
        "--home",
        required=True,
        action="append",
        dest="homes",
        metavar="HOME",
        help=f"{HOME_RULE}; once for each: --home shop --home orders",
    )
    moving_whole = words.add_parser("move", help="move a whole cell to another server, the promoted standby")
    moving_whole.add_argument("name")
    for each in (splitting, moving_whole):
        each.add_argument(
            "--standby", required=True, metavar="URL", help="the URL of the cell's database there; - reads it"
        )
        each.add_argument("--dry-run", action="store_true", help="check, and print what would be done")
        each.add_argument(
            "--promote-by-hand", action="store_true", help="wait until a provider has promoted the standby"
        )
    words.add_parser("resume", help="finish a move that was stopped")
    words.add_parser("undo", help="undo a move whose topics are still in the source")


def _read(url: str) -> str:
    """The URL; for `-` read from standard input, because every user of the machine can see arguments."""
    return sys.stdin.readline().strip() if url == "-" else url


def _described(plan: Plan) -> list[str]:
    move = plan.move
    lines = [f"{move}: {len(plan.moving)} topics: {', '.join(topic.name for topic in plan.moving)}."]
    if not move.is_whole:
        for name, waiting in ((move.source_name, plan.moved), (move.target_name, plan.stayed)):
            lines.append(
                f"To be purged in {name}: {waiting.halves} half messages, {waiting.receipts} deliveries, "
                f"{waiting.timers} timers."
            )
    lines.append(f"The standby is {plan.lag_bytes} bytes behind. Expected pause: {plan.pause_seconds:.1f} s.")
    return lines


def _row(cell: stats.CellState) -> tuple[str, ...]:
    rate = "-" if cell.per_second is None else f"{cell.per_second:,.0f}"
    epoch = "-" if cell.epoch is None else str(cell.epoch)
    return cell.name, str(cell.topics), rate, epoch, _standby(cell), _words(cell)


def _standby(cell: stats.CellState) -> str:
    """How far the cell's slowest standby is behind, as text."""
    if not cell.standbys:
        return "-"
    return "?" if cell.lag_bytes is None else f"{cell.lag_bytes:,}B"


def _words(cell: stats.CellState) -> str:
    return cell.problem or ("takes new topics" if cell.is_open else "ready")
