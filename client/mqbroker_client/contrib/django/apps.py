"""The Django app. It owns the objects that a process makes from the setting MQBROKER."""

from functools import cached_property
from importlib import import_module
from typing import Any, cast

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from mqbroker_client.barrier.answering import RegularWork
from mqbroker_client.barrier.decisions import Barrier
from mqbroker_client.barrier.steps import CommitSteps
from mqbroker_client.contrib.django.options import MEMORY, Options
from mqbroker_client.contrib.django.sessions import DjangoSessions
from mqbroker_client.core.checks import CheckListener
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.producers import Producer

LABEL = "mqbroker_client"
_MADE = ("options", "producer", "barrier", "steps", "work", "listener")


class MqbrokerConfig(AppConfig):
    """Makes each object at its first use; all threads may use it."""

    name = "mqbroker_client.contrib.django"
    label = LABEL
    verbose_name = "mqbroker"

    def ready(self) -> None:
        # Importing registers the checks for `manage.py check`.
        import_module("mqbroker_client.contrib.django.checks")
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
    def work(self) -> RegularWork:
        return RegularWork(self.producer, self.barrier, self.steps.kept)

    @cached_property
    def listener(self) -> CheckListener:
        return CheckListener(self.barrier, self.options.check_secrets)

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


def config() -> MqbrokerConfig:
    return cast(MqbrokerConfig, apps.get_app_config(LABEL))
