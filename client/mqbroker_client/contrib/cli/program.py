"""The arguments of `mqb`, and its exit codes.

0 done, 1 refused, 2 wrong arguments, 3 the broker is away or busy; 130 after Ctrl-C; 141 when the reader of the output
has gone.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

from mqbroker_client.contrib.cli import messages, operators, transactions, watching
from mqbroker_client.contrib.cli.output import Output
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.environment import namespace_of_environment
from mqbroker_client.core.errors import BrokerError, Unreachable
from mqbroker_client.core.requests import VERSION
from mqbroker_client.core.retries import PASSING

DONE, REFUSED, NOT_UNDERSTOOD, AWAY, INTERRUPTED, READER_GONE = 0, 1, 2, 3, 130, 141
DEFAULT_URL = "http://127.0.0.1:8000"
EPILOG = """\
The broker is MQBROKER_URL (default: http://127.0.0.1:8000). The key is MQBROKER_API_KEY or in a file, because every
user of the machine can read arguments. MQBROKER_NAMESPACE is the namespace. Exit codes: 0 done, 1 refused, 2 not
understood, 3 the broker is away or busy.
"""

Command = Callable[[Broker, argparse.Namespace, Output], None]


def main(words: Sequence[str] | None = None) -> int:
    """Runs one command. Returns its exit code."""
    _replace_closed_streams()
    # Failed attempts are not printed; the final result is printed at the end.
    logging.getLogger("mqbroker_client").addHandler(logging.NullHandler())
    try:
        try:
            return _run(parser().parse_args(words))
        finally:
            # Flushed here, because Python would print a traceback if the flush at its exit failed.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader, for example `head`, has closed the pipe.
        _print_no_more()
        return READER_GONE
    except OSError as error:
        # A missing file, or a full disk under the output.
        _print_no_more()
        print(f"mqb: {error}", file=sys.stderr)
        return NOT_UNDERSTOOD


def _run(given: argparse.Namespace) -> int:
    output = Output(given.json, sys.stdout)
    try:
        with _broker(given) as broker:
            command: Command = given.run
            command(broker, given, output)
    except Unreachable as error:
        output.say(f"mqb: {error}. MQBROKER_URL or --url names another broker; `./mq up` starts one.")
        return AWAY
    except BrokerError as error:
        output.say(f"mqb: {error}")
        return AWAY if isinstance(error, PASSING) else REFUSED
    except ValueError as error:
        output.say(f"mqb: {error}")
        return NOT_UNDERSTOOD
    except KeyboardInterrupt:
        return INTERRUPTED
    return DONE


def _replace_closed_streams() -> None:
    """Replaces standard output or error if the caller has closed it, when it is None: printing then does nothing."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 kept open until the program ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _print_no_more() -> None:
    """Discards output that is still in the buffer, so that Python does not fail when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    """All commands."""
    url = os.environ.get("MQBROKER_URL") or DEFAULT_URL
    before, behind = _shared(url=url, api_key_file=None, json=False, namespace=namespace_of_environment()), _shared()
    whole = argparse.ArgumentParser(
        "mqb", description="The broker on the command line.", epilog=EPILOG, parents=[before]
    )
    whole.add_argument("--version", action="version", version=VERSION)
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")

    def add(name: str, run: Command, help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=help, parents=[behind])
        command.set_defaults(run=run)
        return command

    _add_messages(add)
    _add_operators(add)
    _add_transactions(add)
    _add_watching(add)
    return whole


def _shared(**defaults: object) -> argparse.ArgumentParser:
    """The options that may stand before or after the command.

    After the command the options have no default, because a default would replace a value that stands before the
    command.
    """
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--url", help="the URL of the broker, or several between commas")
    shared.add_argument("--api-key-file", type=Path)
    shared.add_argument("--namespace", help="the namespace of all names; not needed for a key that is bound to one")
    shared.add_argument("--json", action="store_true", help="print JSON, a line for each result")
    shared.set_defaults(**defaults)
    return shared


Add = Callable[[str, Command, str], argparse.ArgumentParser]


def _add_messages(add: Add) -> None:
    messages.message_words(add("send", messages.send, "Send a message; prints its id."))
    begin = add("begin", messages.begin, "Begin a transaction; prints its id.")
    messages.message_words(begin)
    begin.add_argument("--group", required=True, help="the producer group")
    for verb, what in (("commit", "Commit a transaction."), ("rollback", "Roll a transaction back.")):
        end = add(verb, messages.end, what)
        end.add_argument("transaction_id", type=UUID)
        end.add_argument("--group", required=True, help="the producer group")
    receive = add("receive", messages.receive, "Receive messages in a consumer group.")
    receive.add_argument("topic")
    receive.add_argument("--group", required=True)
    receive.add_argument("--max", type=int, default=32)
    receive.add_argument("--wait", type=float, default=0, metavar="SECONDS")
    receive.add_argument("--filter", help="a tag expression: 'paid || shipped'")
    receive.add_argument("--ack", action="store_true", help="ack the messages when they are printed")
    tail = add("tail", messages.tail, "Show the last messages of a topic; no consumer group notices.")
    tail.add_argument("topic")
    tail.add_argument("--last", type=int, default=10, help="number of messages of each queue (default: %(default)s)")
    tail.add_argument("--from", dest="from_", choices=("latest", "earliest"), default="latest")
    tail.add_argument("--follow", "-f", action="store_true", help="go on with new messages until Ctrl-C")


def _add_operators(add: Add) -> None:
    add("topics", operators.topics, "List the topics.").add_argument(
        "--all", action="store_true", help="list the broker's own topics, too"
    )
    add("groups", operators.groups, "List the consumer and producer groups.")
    add("keys", operators.keys, "List the API keys.")
    lag = add("lag", operators.lag, "Show how far a consumer group is behind, by queue.")
    lag.add_argument("group")
    lag.add_argument("--topic")
    add("discarded", operators.discarded, "List transactions that checks gave up.").add_argument("--group")
    add("timers", operators.timers, "Show what waits for its time.")
    redrive = add("redrive", operators.redrive, "Send dead letters of a consumer group again.")
    redrive.add_argument("group")
    redrive.add_argument("message_id", nargs="*")
    redrive.add_argument("--all", action="store_true")
    redrive.add_argument("--to-topic", help="send to this topic, not to the message's own")
    redrive.add_argument("--yes", action="store_true", help="do it instead of only showing it")
    reset = add("reset", operators.reset, "Move a consumer group in a topic; a dry run without --yes.")
    reset.add_argument("group")
    reset.add_argument("topic")
    reset.add_argument("--to", required=True, metavar="earliest|latest|TIME|OFFSET")
    reset.add_argument("--queue", type=int, metavar="ID")
    reset.add_argument("--yes", action="store_true", help="do it instead of only showing it")


def _add_transactions(add: Add) -> None:
    add("pending", transactions.pending, "List transactions that are not decided.").add_argument("--group")
    one = add("transaction", transactions.transaction, "Show a transaction and its history.")
    one.add_argument("transaction_id", type=UUID)
    add("trace", transactions.trace, "Show what happened to a message.").add_argument("message_id", type=UUID)
    resume = add("resume", transactions.resume, "Have a discarded transaction checked again.")
    resume.add_argument("transaction_id", type=UUID)
    resume.add_argument("--reason", help="the reason, for the audit")
    resolve = add("resolve", transactions.resolve, "Decide a transaction that its producer does not decide.")
    resolve.add_argument("transaction_id", type=UUID)
    resolve.add_argument("state", choices=("commit", "rollback"))
    resolve.add_argument("--reason", required=True, help="the reason, for the audit")


def _add_watching(add: Add) -> None:
    for name, run, what in (
        ("pause", watching.pause, "Hand out nothing to a consumer group."),
        ("resume-group", watching.resume_group, "Hand out messages to a consumer group again."),
    ):
        group = add(name, run, what)
        group.add_argument("group")
        group.add_argument(
            "--checks", action="store_true", help="pause or resume the checks of a producer group instead"
        )
    add("stats", watching.stats, "Show how much was stored, delivered and decided.")
    watch = add("watch", watching.watch, "Show the rates line by line, until Ctrl-C.")
    watch.add_argument("--every", type=float, default=2.0, metavar="SECONDS")
    watch.add_argument("--times", type=int, metavar="N", help="end after N lines")


def _broker(given: argparse.Namespace) -> Broker:
    if given.api_key_file is not None:
        return Broker(given.url, given.api_key_file.read_text(), namespace=given.namespace)
    key = os.environ.get("MQBROKER_API_KEY", "")
    if not key.strip():
        raise ValueError("no API key: set MQBROKER_API_KEY, or give --api-key-file")
    return Broker(given.url, key, namespace=given.namespace)
