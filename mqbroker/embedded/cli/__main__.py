"""Runs the command that `./mq <command>` names. If it cannot continue, prints the reason in one sentence."""

import importlib
import importlib.util
import os
import signal
import sys
from collections.abc import Callable

from mqbroker.embedded.errors import CannotStart
from mqbroker.embedded.interrupts import Interrupted

COMMANDS = {
    "up": "Runs the broker with a private PostgreSQL and Valkey until Ctrl-C.",
    "demo": "Runs the order and coupon services over a number of orders, and reconciles.",
    "mqb": "Sends and receives messages, lists and repairs: the client's command line.",
    "relay": "Relays a topic to RabbitMQ, Kafka or NATS, as a file describes.",
    "export": "Writes messages, entries and transactions to Parquet with Spark.",
    "lake": "Keeps a table of Delta Lake with the committed messages, a minute old.",
    "report": "Makes reports of an export: Parquet files and a page.",
    "settings": "Prints every setting with its value, its default and its meaning.",
    "doctor": "Says what is out of order, why, and what mends it.",
    "cells": "Lists, adds, opens, splits and removes cells: the databases of one installation; runs standbys.",
    "manage": "Runs a Django management command on the data folder's database.",
    "dev": "Runs the broker and starts its processes again when code changes.",
}
# The functions of commands that `analytics` adds: nothing else imports that package, which may be left out.
PLACES = {name: f"analytics.management.command_line.{name}" for name in ("export", "lake", "report")}
# The modules of the package `tools`, which only a checkout has.
TOOLS = {
    "test": "Runs the tests on servers of their own; options are pytest's.",
    "check": "Checks format, lint, types, imports, migrations, deployment and locks.",
    "chaos": "Kills, freezes and cuts off a broker under load, and compares what it kept with what it acknowledged.",
    "fuzz": "Makes requests up from the schema, right and wrong ones, and holds every answer to it.",
    "simulate": "Runs the code of the product in a simulated event loop, by seeds that repeat a failure.",
    "mutants": "Plants faults in the product, one at a time, and notes which of them the tests catch.",
    "bench": "Runs the benchmarks on servers of their own.",
    "build": "Makes a release: source archives and wheels, their components, notes and digests.",
    "audit": "Compares the locked packages with the known weaknesses, where the advisories can be reached.",
    "sbom": "Writes the components of the broker as a CycloneDX document.",
    "lock": "Remakes the hash-locked requirements from pyproject.toml.",
}


def main(words: list[str]) -> int:
    """Runs a command; returns its exit code."""
    try:
        code = run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has closed the pipe. Python must not fail on it again in its last flush.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return 128 + signal.SIGPIPE
    return code


def run(words: list[str]) -> int:
    name, *options = words or ["--help"]
    if name in ("-h", "--help", "help"):
        print(usage())
        return 0
    if name not in available():
        needs = "needs a checkout" if name in TOOLS else "is no command of mq"
        print(f"mq: {name!r} {needs}.\n{usage()}", file=sys.stderr)
        return 2
    # Only the named command is imported, which shortens its start.
    room = "tools" if name in TOOLS else "mqbroker.embedded.cli"
    module, _, function = PLACES.get(name, f"{room}.{name}.main").rpartition(".")
    command: Callable[[list[str]], int] = getattr(importlib.import_module(module), function)
    try:
        return command(options)
    except CannotStart as problem:
        print(f"mq: {problem}", file=sys.stderr)
        return 1
    except (Interrupted, KeyboardInterrupt):
        return 130


def available() -> dict[str, str]:
    """The commands of this installation by name.

    The wheel has no package `tools`, so it lacks the commands for developers; `analytics` may be left out.
    """
    left_out = () if importlib.util.find_spec("analytics") else PLACES
    own = {name: meaning for name, meaning in COMMANDS.items() if name not in left_out}
    return own | TOOLS if importlib.util.find_spec("tools") else own


def usage() -> str:
    commands = available()
    command = os.environ.get("MQ_COMMAND", "./mq")
    width = max(map(len, commands))
    lines = [f"  {name:<{width}}  {meaning}" for name, meaning in commands.items()]
    return "\n".join(
        [f"usage: {command} <command> [options]", "", *lines, "", f"{command} <command> --help lists its options."]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
