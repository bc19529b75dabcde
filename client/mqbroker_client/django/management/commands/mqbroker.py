"""`manage.py mqbroker checks`: a process that answers checks, sends kept messages and deletes old rows."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from mqbroker_client.django.apps import config


class Command(BaseCommand):
    help = "Runs a part of the producer's work until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        works = parser.add_subparsers(dest="work", required=True)
        works.add_parser("checks", help="answer the broker's checks, send kept messages, delete old rows")

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        self.stdout.write(f"answers checks of {config().options.producer_group}")
        self.stdout.flush()
        config().work.run(stop)
