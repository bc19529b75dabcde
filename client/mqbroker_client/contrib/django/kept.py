"""`manage.py mqbroker kept`: lists, sends and drops messages that were kept while the broker was away."""

from collections.abc import Mapping, Sequence
from typing import Any, TextIO
from uuid import UUID

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from mqbroker_client.barrier.kept import KeptMessages
from mqbroker_client.barrier.table import KeptTransaction

Output = TextIO | OutputWrapper


def add_arguments(parser: CommandParser) -> None:
    """Adds the subcommands.

    `list` is the default; `send` and `drop` take ids, or `--refused` for all messages that are set apart.
    """
    parser.add_argument(
        "verb",
        nargs="?",
        choices=("list", "send", "drop"),
        default="list",
        help="list: show all; send: send what waits, and of given ids also what is set apart; drop: delete them",
    )
    parser.add_argument("transaction_id", nargs="*", type=UUID, help="the id in the list")
    parser.add_argument("--refused", action="store_true", help="all messages that the broker has refused")


def run(kept: KeptMessages, options: Mapping[str, Any], output: Output) -> None:
    """Runs the command. Raises CommandError with the reason when messages are left."""
    {"list": _list, "send": _send, "drop": _drop}[options["verb"]](kept, options, output)


def _list(kept: KeptMessages, options: Mapping[str, Any], output: Output) -> None:
    found = [one for one in kept.transactions() if one.refused or not options["refused"]]
    for one in found:
        output.write(_line(one) + "\n")
    if not found:
        output.write("Nothing is kept.\n")


def _send(kept: KeptMessages, options: Mapping[str, Any], output: Output) -> None:
    again: Sequence[UUID] | None = None if options["refused"] else options["transaction_id"]
    found = kept.send_again(again)
    output.write(f"{len(found.sent)} transactions were sent.\n")
    for id_, reason in found.refused.items():
        output.write(f"{id_}  refused: {reason}\n")
    if found.waits is not None:
        raise CommandError(f"What is kept waits: {found.waits}")
    if found.refused:
        raise CommandError(f"{len(found.refused)} are refused: mend the reason and send again, or drop them.")


def _drop(kept: KeptMessages, options: Mapping[str, Any], output: Output) -> None:
    chosen: Sequence[UUID] = options["transaction_id"]
    if options["refused"]:
        chosen = [one.transaction_id for one in kept.transactions() if one.refused]
    elif not chosen:
        raise CommandError("Name the transactions to drop, as `kept` lists them, or give --refused.")
    output.write(f"{kept.drop(chosen)} of {len(chosen)} transactions were dropped.\n")


def _line(one: KeptTransaction) -> str:
    what = f"messages: {one.messages} to {', '.join(one.topics)}, {one.characters} characters"
    state = f"refused: {one.refused}" if one.refused else "waits"
    return f"{one.transaction_id}  {one.committed_at:%Y-%m-%d %H:%M:%S}Z  {what}  {state}"
