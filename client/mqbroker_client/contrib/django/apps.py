"""The Django app. It owns the objects that a process makes from the setting MQBROKER."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, cast

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from mqbroker_client.barrier.answering import RegularWork
from mqbroker_client.barrier.decisions import Barrier
from mqbroker_client.barrier.steps import CommitSteps
from mqbroker_client.contrib.django.options import MEMORY, Options
from mqbroker_client.contrib.django.sessions import DjangoSessions
from mqbroker_client.core.checks import CheckListener
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.producers import Producer
from mqbroker_client.core.states import LocalTransactionState, Outcome

LABEL = "mqbroker_client"
_MADE = ("options", "producer", "barrier", "steps", "all_steps", "works", "listener")


@dataclass(frozen=True, slots=True)
class _Barriers:
    """A check that asks the barrier of the half messages' own producer group."""

    by_group: Mapping[str, Barrier]

    def answer(self, halves: Sequence[HalfMessage]) -> Sequence[Outcome]:
        # All half messages in one call of the broker belong to one producer group.
        [group] = {half.producer_group for half in halves}
        if group in self.by_group:
            return self.by_group[group].answer(halves)
        return [Outcome(LocalTransactionState.UNKNOWN, f"MQBROKER has no producer group {group}")] * len(halves)

    def __call__(self, half: HalfMessage) -> LocalTransactionState:
        [outcome] = self.answer([half])
        return outcome.state


class MqbrokerConfig(AppConfig):
    """Makes each object at its first use; all threads may use it."""

    name = "mqbroker_client.contrib.django"
    label = LABEL
    verbose_name = "mqbroker"

    def ready(self) -> None:
        # Importing registers the checks for `manage.py check`.
        import_module("mqbroker_client.contrib.django.checks")
        if task_backends():
            _import_framework()
        setting_changed.connect(self._forget, dispatch_uid="mqbroker_client")

    @cached_property
    def options(self) -> Options:
        return Options.read(getattr(settings, "MQBROKER", None))

    @cached_property
    def producer(self) -> Producer:
        return Producer(self._broker(), self.options.producer_group)

    @cached_property
    def barrier(self) -> Barrier:
        return Barrier.over(DjangoSessions(self.options.database), self.options.producer_group)

    @cached_property
    def steps(self) -> CommitSteps:
        return CommitSteps(self.producer, self.barrier, self.options.on_unavailable)

    @cached_property
    def all_steps(self) -> Mapping[str, CommitSteps]:
        """The steps around the COMMIT in each database, by its alias."""
        steps = {self.options.database: self.steps}
        for alias in self.options.more_databases:
            producer = Producer(self.producer.broker, f"{self.options.producer_group}-{alias}")
            barrier = Barrier.over(DjangoSessions(alias), producer.group)
            steps[alias] = CommitSteps(producer, barrier, self.options.on_unavailable)
        return steps

    @cached_property
    def works(self) -> Sequence[RegularWork]:
        """The regular work of each producer group."""
        return [RegularWork(steps.producer, steps.barrier, steps.kept) for steps in self.all_steps.values()]

    @contextmanager
    def working(self, stop: threading.Event) -> Iterator[None]:
        """Within the block, threads do the regular work of all producer groups. Leaving the block sets `stop`."""
        threads = [threading.Thread(target=work.run, args=(stop,), daemon=True) for work in self.works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    @cached_property
    def listener(self) -> CheckListener:
        barriers = {steps.producer.group: steps.barrier for steps in self.all_steps.values()}
        return CheckListener(_Barriers(barriers), self.options.check_secrets)

    def _broker(self) -> Broker:
        if self.options.url == MEMORY:
            made: Broker = import_string("mqbroker_client.contrib.testing.MemoryBroker")()
            return made
        return Broker(self.options.url, self.options.api_key)

    def _forget(self, *, setting: str, **_: Any) -> None:
        """Drops the objects after a test has changed the setting."""
        if setting == "MQBROKER":
            for name in _MADE:
                self.__dict__.pop(name, None)


def task_backends() -> Sequence[str]:
    """The keys of TASKS whose backend is mqbroker's."""
    given = getattr(settings, "TASKS", {})
    return [alias for alias, params in given.items() if params.get("BACKEND", "").startswith("mqbroker_client.")]


def _import_framework() -> None:
    """Imports the task framework: Django 6 checks task backends only in a process that has imported it."""
    try:
        import_module("mqbroker_client.contrib.django.tasks.framework")
    except ModuleNotFoundError as error:
        raise ImproperlyConfigured(
            f"TASKS has a backend of mqbroker, and there is no module {error.name}: use Django 6, or run "
            "pip install 'mqbroker-client[django-tasks]'."
        ) from error


def config() -> MqbrokerConfig:
    return cast(MqbrokerConfig, apps.get_app_config(LABEL))
