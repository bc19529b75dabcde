"""`manage.py mqbroker checks`: a process that answers checks, sends kept messages and deletes old rows.

`manage.py mqbroker consume TOPIC GROUP HANDLER` runs a consumer. `manage.py mqbroker celery-relay APP` publishes task
calls to the broker of a Celery app. `manage.py mqbroker kept` lists the messages that are kept while the broker is
away; `kept send` and `kept drop` send and drop them.
"""

import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from mqbroker_client.contrib.django import kept
from mqbroker_client.contrib.django.apps import config
from mqbroker_client.contrib.django.inbox import closing_connections
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.running import stopped_by_signals


class Command(BaseCommand):
    help = "Runs a part of the producer's work until SIGTERM or Ctrl-C, or shows and changes what is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        works = parser.add_subparsers(dest="work", required=True)
        works.add_parser("checks", help="answer the broker's checks, send kept messages, delete old rows")
        keeping = works.add_parser("kept", help="list, send or drop messages that were kept while the broker was away")
        keeping.add_argument("--database", help="one of MQBROKER's databases (default: its DATABASE)")
        kept.add_arguments(keeping)
        relay = works.add_parser("celery-relay", help="publish calls of tasks to the broker of a Celery app")
        relay.add_argument("app", help="the Celery app, as in Celery's -A: shop.celery, or shop.celery:app")
        relay.add_argument("--topic", default="celery-tasks", help="the topic of the calls (default: %(default)s)")
        relay.add_argument("--group", default="celery-relay", help="the relay's consumer group (default: %(default)s)")
        relay.add_argument("--concurrency", type=int, default=8, help="the number of threads (default: %(default)s)")
        consume = works.add_parser("consume", help="run a consumer")
        consume.add_argument("topic")
        consume.add_argument("group")
        consume.add_argument("handler", help="the handler of a delivery, by its dotted name: shop.coupons.handle")
        consume.add_argument("--concurrency", type=int, default=8, help="the number of threads (default: %(default)s)")
        consume.add_argument("--invisible-seconds", type=float, default=60.0)
        consume.add_argument(
            "--stop-seconds", type=float, default=30.0, help="the time that running handlers have at a stop"
        )
        kinds = consume.add_mutually_exclusive_group()
        kinds.add_argument("--ordered", action="store_true", default=None, help="the group is ordered")
        kinds.add_argument(
            "--unordered",
            dest="ordered",
            action="store_false",
            help="the group is not ordered; without either option the broker is asked",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["work"] == "consume":
            self._consume(options)
        elif options["work"] == "celery-relay":
            self._relay(options)
        elif options["work"] == "kept":
            alias = options["database"] or config().options.database
            if alias not in config().all_steps:
                raise CommandError(f"MQBROKER does not name the database {alias}.")
            kept.run(config().all_steps[alias].kept, options, self.stdout)
        else:
            self._answer_checks()

    def _consume(self, options: dict[str, Any]) -> None:
        try:
            handler = import_string(options["handler"])
        except ImportError as error:
            raise CommandError(f"There is no handler {options['handler']}: {error}") from error
        self.stdout.write(f"consumes {options['topic']} as {options['group']}")
        self.stdout.flush()
        try:
            self._consumer(options["group"]).run(
                options["topic"],
                closing_connections(handler),
                concurrency=options["concurrency"],
                ordered=options["ordered"],
                invisible_seconds=options["invisible_seconds"],
                stop_seconds=options["stop_seconds"],
            )
        except (BrokerError, ValueError) as error:
            raise CommandError(str(error)) from error

    def _relay(self, options: dict[str, Any]) -> None:
        try:
            app = import_string("celery.app.utils.find_app")(options["app"])
            relay = import_string("mqbroker_client.contrib.celery.Relay")(
                app, self._consumer(options["group"]), options["topic"]
            )
        except (ImportError, AttributeError) as error:
            raise CommandError(f"There is no Celery app {options['app']}: {error}") from error
        self.stdout.write(f"relays {options['topic']} as {options['group']}")
        self.stdout.flush()
        try:
            relay.run(concurrency=options["concurrency"])
        except (BrokerError, ValueError) as error:
            raise CommandError(str(error)) from error

    def _consumer(self, group: str) -> Consumer:
        return Consumer(config().producer.broker, group)

    def _answer_checks(self) -> None:
        stop = threading.Event()
        with stopped_by_signals(stop), config().working(stop):
            self.stdout.write(f"answers checks of {', '.join(work.producer.group for work in config().works)}")
            self.stdout.flush()
            stop.wait()
