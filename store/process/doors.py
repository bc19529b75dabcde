"""Doors: Django apps that an installation can do without. The core asks here what they add, and imports none of them.

A door is one folder. Its `apps.py` has a Door, and `mqbroker.environment.framework` lists its name. Without the folder
the list leaves the door out, and everything else runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

from django.apps import AppConfig
from django.conf import settings


class To(Enum):
    """A part of the core to which a door adds. Each comment says what one addition is, and which module asks for it."""

    # A function of the words of the command line, called before most of Django is imported: manage.py.
    COMMAND_LINE = "command line"
    # A Tick, whose task is in the door's module `tasks`: mqbroker.celery.app.
    BEAT = "beat"
    # A name, and a coroutine function that does what has been due for the given seconds: mqbroker.process.background.
    FALLBACK = "fallback"
    # The type of a part of the runtime that begins work, so that it is closed first: mqbroker.process.background.
    CLOSED_FIRST = "closed first"
    # A model with sealed columns: mqbroker.process.sealed_secrets.
    SEALED = "sealed"
    # A path of the HTTP API and its Resource: mqbroker.urls.
    PATHS = "paths"
    # A path below /console/, its view and its name: console.pages.routes.
    PAGES = "pages"
    # A Link: console.theme.
    SIDEBAR = "sidebar"
    # A console.actions.shapes.Stepwise: console.actions.kinds.
    ACTIONS = "actions"
    # The name of an action that the role `operator` may do: access.roles.
    OPERATORS = "operators"
    # A console.monitoring.scrape.Metric: console.monitoring.metrics.
    METRICS = "metrics"
    # A function of the time that yields findings: console.monitoring.attention, for the overview and the doctor.
    FINDINGS = "findings"
    # A function that returns a console.monitoring.system.Beside: console.monitoring.system.
    SURROUNDINGS = "surroundings"


class Tick(NamedTuple):
    """A task that beat starts, and the seconds between two ticks. With `needs` it ticks where this setting is given."""

    task: str
    every_seconds: float
    needs: str = ""


class Link(NamedTuple):
    """A line of the console's sidebar, below the line of the page `after`. `page` names the page to which it leads."""

    after: str
    title: str
    icon: str
    page: str


class Door(AppConfig):
    """A door: `adds` has a place in the door for each part of the core to which it adds, such as `page.PAGES`.

    The module of a place is imported when the part of the core asks, so that no process imports what it does not use.
    """

    adds: ClassVar[Mapping[To, str]] = {}

    def added(self, to: To) -> Sequence[Any]:
        """What this door adds to a part of the core."""
        if to not in self.adds:
            return ()
        module, _, attribute = self.adds[to].rpartition(".")
        found: Sequence[Any] = getattr(import_module(f"{self.name}.{module}"), attribute)
        return found


def added(to: To, names: Sequence[str] | None = None) -> Iterator[Any]:
    """What the doors add to a part of the core, door by door; also before Django's apps are ready.

    `names` are the doors; None: those of the settings.
    """
    for name in settings.DOORS if names is None else names:
        door = AppConfig.create(name)
        assert isinstance(door, Door), f"{name}.apps has no Door"
        yield from door.added(to)
