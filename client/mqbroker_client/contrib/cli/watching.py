"""Commands of `mqb` for a running broker: pause and continue, and its activity, once or continuously."""

import argparse
import time

from mqbroker_client.contrib.cli.output import Output
from mqbroker_client.core.calls import path
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.documents import Document

MEASURES = ("messages", "entries", "halves", "commits", "rollbacks", "discarded", "checks")
LINE = "%H:%M:%S"


def pause(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    """Pauses the deliveries of a consumer group, or the checks of a producer group."""
    _put(broker, given, output, paused=True)


def resume_group(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    _put(broker, given, output, paused=False)


def _put(broker: Broker, given: argparse.Namespace, output: Output, *, paused: bool) -> None:
    kind, field, what = (
        ("producer-groups", "checks_paused", "checks") if given.checks else ("consumer-groups", "paused", "deliveries")
    )
    # This request fails for a missing group, which the next request would create.
    broker.call("GET", path(kind, given.group))
    found = broker.call("PUT", path(kind, given.group), {field: paused})
    output.one(found, f"{what} of {given.group} are {'paused' if paused else 'on'}")


def stats(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    found = broker.call("GET", path("stats"))
    if output.as_json:
        output.one(found, "")
        return
    rows = [
        {
            "of": name,
            "kept": found["totals"][name],
            "last_minute": found["last_minute"][name]["count"],
            "per_second": f"{found['last_minute'][name]['per_second']:.1f}",
            "last_hour": found["last_hour"][name]["count"],
        }
        for name in MEASURES
    ]
    output.rows(rows, ("of", "kept", "last_minute", "per_second", "last_hour"), "")
    if found["missing"]:
        output.say(f"Not counted, because these cells did not answer: {', '.join(found['missing'])}.")


def watch(broker: Broker, given: argparse.Namespace, output: Output) -> None:
    """Prints a line every `--every` seconds, until Ctrl-C or `--times` lines."""
    printed = 0
    while given.times is None or printed < given.times:
        if printed:
            time.sleep(given.every)
        found = broker.call("GET", path("stats"))
        output.one(found, _line(found))
        printed += 1


def _line(found: Document) -> str:
    minute = found["last_minute"]
    rates = (f"{name} {minute[name]['per_second']:,.1f}/s" for name in MEASURES)
    return f"{time.strftime(LINE)}  {'  '.join(rates)}"
