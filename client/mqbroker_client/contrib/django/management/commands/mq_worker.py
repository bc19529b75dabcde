"""`manage.py mq_worker`: a process that runs tasks, and does the regular work of `manage.py mqbroker checks`."""

import atexit
import os
import socket
import threading
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import autoreload

from mqbroker_client.contrib.django.apps import config
from mqbroker_client.contrib.django.inbox import closing_connections
from mqbroker_client.contrib.django.tasks import Backend, working
from mqbroker_client.contrib.django.tasks.framework import task_backends
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.running import stopped_by_signals


class Command(BaseCommand):
    help = "Runs tasks until SIGTERM or Ctrl-C; running tasks then have --stop-seconds to end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queues", help="names of queues between commas, the preferred queues first (default: QUEUES)"
        )
        parser.add_argument("--threads", type=int, default=8, help="number of tasks at a time (default: %(default)s)")
        parser.add_argument("--backend", default="default", help="a key of TASKS (default: %(default)s)")
        parser.add_argument("--reload", action="store_true", help="start again when code changes, for development")
        parser.add_argument(
            "--invisible-seconds",
            type=float,
            default=60.0,
            help="the time after which another worker runs a dead worker's task",
        )
        parser.add_argument(
            "--stop-seconds", type=float, default=30.0, help="the time that running tasks have at a stop"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["reload"]:
            autoreload.run_with_reloader(self._work_until_exit, options)
        else:
            self._work(options, threading.Event())

    def _work_until_exit(self, options: dict[str, Any]) -> None:
        """The reloader ends the process by `sys.exit` in another thread."""
        stop, ended = threading.Event(), threading.Event()
        atexit.register(ended.wait, options["stop_seconds"])
        # Python calls `stop.set` before `ended.wait`, because it was registered later.
        atexit.register(stop.set)
        try:
            self._work(options, stop)
        finally:
            ended.set()

    def _work(self, options: dict[str, Any], stop: threading.Event) -> None:
        try:
            backend = task_backends[options["backend"]]
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        if not isinstance(backend, Backend):
            raise CommandError(f"TASKS[{options['backend']!r}] is not {Backend.__module__}.{Backend.__name__}.")
        queues = _queues(backend, options["queues"])
        group = f"{config().options.producer_group}-tasks"
        handler = working.TaskHandler(group, f"{socket.gethostname()}-{os.getpid()}")
        try:
            limits = working.limits(
                options["threads"],
                invisible_seconds=options["invisible_seconds"],
                stop_seconds=options["stop_seconds"],
            )
            consumer = Consumer(config().producer.broker, group)
            runner = working.TaskRunner(consumer, backend.own.topics(queues), closing_connections(handler), limits)
            with stopped_by_signals(stop), config().working(stop):
                self.stdout.write(f"runs tasks of {', '.join(queues)} as {group}")
                self.stdout.flush()
                runner.run(stop)
        except (BrokerError, ValueError) as error:
            raise CommandError(str(error)) from error


def _queues(backend: Backend, given: str | None) -> Sequence[str]:
    """The queues to work for. Raises CommandError for a name that is not in QUEUES, or without any name."""
    queues = [name.strip() for name in given.split(",")] if given else backend.queue_names
    if not queues:
        raise CommandError(f"QUEUES of TASKS[{backend.alias!r}] is empty, so tasks may have any queue: give --queues.")
    # Django's rule: with empty QUEUES, any name is a queue.
    if unknown := [name for name in queues if backend.queue_names and name not in backend.queue_names]:
        raise CommandError(
            f"TASKS[{backend.alias!r}] has no queue {', '.join(unknown)}: its QUEUES are "
            f"{', '.join(backend.queue_names)}."
        )
    return queues
