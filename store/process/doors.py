"""Doors: Django apps that an installation can do without. The core asks here what they add, and imports none of them.

A door is one folder. Its module `door` says what it adds, and `mqbroker.environment.framework` lists its name. Without
the folder the door is not in the list, and everything else runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from typing import Any, NamedTuple


class To(Enum):
    """A part of the core to which a door may add. Each comment says what is added, and which module asks for it."""

    # A function that is called with the command line's words before Django is imported. Asked for by manage.py.
    COMMAND_LINE = "command line"
    # A Tick: mqbroker.celery.app.
    BEAT = "beat"
    # A name, and a coroutine function that does the work due for a number of seconds: mqbroker.process.background.
    FALLBACK = "fallback"
    # A class of parts of the runtime that start work, so that they are closed first: mqbroker.process.background.
    CLOSED_FIRST = "closed first"
    # A model with encrypted columns. Asked for by mqbroker.process.sealed_secrets.
    SEALED = "sealed"
    # A path of the HTTP API and the Resource that serves it. Asked for by mqbroker.urls.
    PATHS = "paths"
    # A path below /console/, its view and its name. Asked for by console.pages.routes.
    PAGES = "pages"
    # A path below /console/, its view and its name, for callers without a session. Asked for by console.site.
    ENTRANCES = "entrances"
    # The title of a link on the sign-in page, and the name of the page to which it leads. Asked for by console.site.
    SIGN_INS = "sign-ins"
    # A Link: console.theme.
    SIDEBAR = "sidebar"
    # A console.actions.shapes.Kind: console.actions.kinds.
    ACTIONS = "actions"
    # The name of an action that the role `operator` may do. Asked for by access.roles.
    OPERATORS = "operators"
    # A console.monitoring.scrape.Metric: console.monitoring.metrics.
    METRICS = "metrics"
    # A function that gets the time and yields findings for overview and doctor. Asked for by
    # console.monitoring.attention.
    FINDINGS = "findings"
    # A function that returns what the page System shows about the door (`Beside`). Asked for by
    # console.monitoring.system.
    SURROUNDINGS = "surroundings"


class Tick(NamedTuple):
    """A task that beat starts, the seconds between two ticks, and the package whose module `tasks` has the task.

    If `needs` names a setting, the task is sent only where this setting is given.
    """

    task: str
    every_seconds: float
    package: str
    needs: str = ""


class Link(NamedTuple):
    """A line of the console's sidebar, below the line of the page `after`. `page` names the page to which it leads."""

    after: str
    title: str
    icon: str
    page: str


# What a door adds to each part of the core: the additions, or a place in the door with the additions, such as
# `page.PAGES`. The module of a place is imported when the part asks, so that no process imports what it does not use.
Adds = Mapping[To, str | Sequence[Any]]


def added(to: To, names: Sequence[str] | None = None) -> Iterator[Any]:
    """The additions of the doors to a part of the core, door by door; may be called before Django's apps are ready.

    `names` are the doors; None: the doors of the settings.
    """
    if names is None:
        # Not at the top: manage.py asks before anything of Django is imported.
        from django.conf import settings

        names = settings.DOORS
    for name in names:
        adds: Adds = import_module(f"{name}.door").ADDS
        found = adds.get(to, ())
        if isinstance(found, str):
            module, _, attribute = found.rpartition(".")
            found = getattr(import_module(f"{name}.{module}"), attribute)
        yield from found
