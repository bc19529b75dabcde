"""Django checks: the setting MQBROKER and its tables; with --deploy, whether a process answers the broker's checks."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.urls import NoReverseMatch, reverse

from mqbroker_client.contrib.django.apps import LABEL
from mqbroker_client.contrib.django.options import Options

TAG = "mqbroker"
VIEW = "mqbroker-checks"
RUNS = "`manage.py mqbroker checks`"


def _options() -> Options | None:
    """The validated setting; None if it is invalid, which `options` reports."""
    try:
        return Options.read(getattr(settings, "MQBROKER", None))
    except ImproperlyConfigured:
        return None


@register(TAG)
def options(**_: Any) -> Sequence[CheckMessage]:
    """Reports a missing or unknown key of MQBROKER, or an unknown database."""
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
def tables(**_: Any) -> Sequence[CheckMessage]:
    """Warns about migrations that are not applied. Only a warning, because `migrate` runs the checks first.

    Also runs without `--database`, because it is a single query. A database that does not answer is ignored.
    """
    read = _options()
    aliases = [alias for alias in read.databases if alias in connections.databases] if read else []
    return [warning for alias in aliases for warning in _missing_tables(alias)]


def _missing_tables(alias: str) -> Sequence[CheckMessage]:
    try:
        loader = MigrationLoader(connections[alias])
    except DatabaseError:
        return []
    known = {name for name in loader.disk_migrations if name[0] == LABEL}
    missing = sorted(name for _, name in known - set(loader.applied_migrations))
    if not missing:
        return []
    named = f"{', '.join(missing)} of {LABEL} {'is' if len(missing) == 1 else 'are'} not applied"
    return [
        Warning(
            f"The migration {named} in the database {alias}: no message can be sent in its transactions.",
            hint=f"manage.py migrate {LABEL} --database {alias}",
            id="mqbroker.W001",
        )
    ]


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
