"""Django checks: the setting MQBROKER and its tables; with --deploy, whether a process answers the broker's checks."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.urls import NoReverseMatch, reverse

from mqbroker_client.contrib.django.apps import LABEL, task_backends
from mqbroker_client.contrib.django.options import MEMORY, Options

TAG = "mqbroker"
VIEW = "mqbroker-checks"
RUNS = "`manage.py mqbroker checks`"
TABLES = {"mqbroker_barrier", "mqbroker_inbox", "mqbroker_task"}


def _options() -> Options | None:
    """The validated setting; None if it is invalid, which `options` reports."""
    try:
        return Options.read(getattr(settings, "MQBROKER", None))
    except ImproperlyConfigured:
        return None


@register(TAG)
def options(**_: Any) -> Sequence[CheckMessage]:
    """Reports a missing or unknown key of MQBROKER, a wrong value, or an unknown database."""
    try:
        read = Options.read(getattr(settings, "MQBROKER", None))
    except ImproperlyConfigured as problem:
        return [Error(str(problem), id="mqbroker.E001")]
    named = ", ".join(connections.databases)
    return [
        Error(f"MQBROKER names the database {alias}: DATABASES has {named}.", id="mqbroker.E002")
        for alias in read.databases
        if alias not in connections.databases
    ]


@register(TAG)
def framework(**_: Any) -> Sequence[CheckMessage]:
    """Reports that Django 5.2 would check and log no task: the app of the package django-tasks does that."""
    if not task_backends() or find_spec("django.tasks") is not None or apps.is_installed("django_tasks"):
        return []
    return [
        Error("TASKS has a backend of mqbroker, and INSTALLED_APPS lacks 'django_tasks'.", id="mqbroker.E007"),
    ]


@register(TAG)
def tables(**_: Any) -> Sequence[CheckMessage]:
    """Warns about migrations that are not applied, and about tables that a database router has left out.

    Only warnings, because `migrate` runs the checks first.

    Also runs without `--database`, because it is two queries. A database that does not answer is ignored.
    """
    read = _options()
    aliases = [alias for alias in read.databases if alias in connections.databases] if read else []
    return [warning for alias in aliases for warning in _missing_tables(alias)]


def _missing_tables(alias: str) -> Sequence[CheckMessage]:
    try:
        loader = MigrationLoader(connections[alias])
        names = connections[alias].introspection.table_names()
    except DatabaseError:
        return []
    known = {name for name in loader.disk_migrations if name[0] == LABEL}
    missing = sorted(name for _, name in known - set(loader.applied_migrations))
    if not missing:
        return _left_out(alias, sorted(TABLES.difference(names)))
    named = f"{', '.join(missing)} of {LABEL} {'is' if len(missing) == 1 else 'are'} not applied"
    return [
        Warning(
            f"The migration {named} in the database {alias}: no message can be sent in its transactions.",
            hint=f"manage.py migrate {LABEL} --database {alias}",
            id="mqbroker.W001",
        )
    ]


def _left_out(alias: str, tables: Sequence[str]) -> Sequence[CheckMessage]:
    if not tables:
        return []
    return [
        Warning(
            f"The database {alias} has no table {', '.join(tables)}, though all migrations are applied: no message can "
            "be sent in its transactions.",
            hint=f"Let allow_migrate of DATABASE_ROUTERS be true for the app {LABEL} in this database, and migrate the "
            f"app anew: manage.py migrate {LABEL} zero --database {alias}, then without zero.",
            id="mqbroker.W003",
        )
    ]


@register(TAG, deploy=True)
def persistent(**_: Any) -> Sequence[CheckMessage]:
    """Warns about the broker for tests, whose messages end with the process."""
    read = _options()
    if read is None or read.url != MEMORY:
        return []
    return [Warning(f"MQBROKER has the URL {MEMORY}, whose messages end with the process.", id="mqbroker.W004")]


@register(TAG, deploy=True)
def answering(**_: Any) -> Sequence[CheckMessage]:
    """Warns when the view is missing: then only a separate process, which this check cannot see, answers checks."""
    read = _options()
    if read is None:
        return []
    try:
        path = reverse(VIEW)
    except NoReverseMatch:
        path = ""
    if path and read.check_secrets:
        return []
    if path:
        reason = f"the view at {path} refuses all checks, for MQBROKER has no CHECK_SECRETS"
    elif read.check_secrets:
        reason = "MQBROKER has CHECK_SECRETS, and no URL leads to the view of mqbroker_client.contrib.django.urls"
    else:
        reason = "no URL leads to the view of mqbroker_client.contrib.django.urls"
    return [
        Warning(
            f"No process of this project answers checks, unless {RUNS} runs somewhere: {reason}. What a process that "
            "dies leaves undecided stays so.",
            hint=f"Run {RUNS}, and name mqbroker.W002 in SILENCED_SYSTEM_CHECKS; or include the view's URLs.",
            id="mqbroker.W002",
        )
    ]
