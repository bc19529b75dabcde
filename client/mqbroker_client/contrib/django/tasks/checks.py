"""The reports of `manage.py check` about a task backend.

The app's own checks report what is wrong with MQBROKER, and migrations that are not applied.
"""

from collections.abc import Iterator, Sequence

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from mqbroker_client.contrib.django.apps import config
from mqbroker_client.contrib.django.options import is_name
from mqbroker_client.contrib.django.tasks.options import BackendOptions
from mqbroker_client.core.rules import NAME_CHARACTERS

APP = "mqbroker_client.contrib.django"


def findings(alias: str, own: BackendOptions, queue_names: Sequence[str]) -> Iterator[CheckMessage]:
    """A missing app, an unknown database, a database that does not commit, and queues whose names no topic can have."""
    if not apps.is_installed(APP):
        yield Error(f"The task backend {alias} needs {APP!r} in INSTALLED_APPS.", id="mqbroker.E003")
        return
    try:
        databases = config().options.databases
    except ImproperlyConfigured:
        return
    if own.database and own.database not in databases:
        yield Error(
            f"The task backend {alias} names the database {own.database}: MQBROKER has {', '.join(databases)}.",
            hint="Name the database in MORE_DATABASES of MQBROKER.",
            id="mqbroker.E004",
        )
    for topic in own.topics(queue_names):
        if not is_name(topic):
            yield Error(
                f"The task backend {alias} would need a topic {topic!r}: a topic has at most {NAME_CHARACTERS} "
                "letters, digits, _, - and %.",
                id="mqbroker.E005",
            )
    for database in [own.database] if own.database else databases:
        if own.atomic and not connections.databases.get(database, {}).get("AUTOCOMMIT", True):
            yield Error(
                f"The task backend {alias} runs tasks in transactions of the database {database}, whose AUTOCOMMIT is "
                "off: every task would fail.",
                hint="Set AUTOCOMMIT of the database to True, or ATOMIC of the backend's OPTIONS to False.",
                id="mqbroker.E006",
            )
