"""The setting MQBROKER, read and validated once."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self

from django.core.exceptions import ImproperlyConfigured

from mqbroker_client.barrier.steps import OnUnavailable

#: As URL: the broker for tests, within the process.
MEMORY = "memory:"
_OF_MEMORY = {"API_KEY": "memory", "PRODUCER_GROUP": "tests"}


@dataclass(frozen=True, slots=True)
class Options:
    """The values of the setting. Each field is a key of MQBROKER, in capitals."""

    url: str
    api_key: str = field(repr=False)
    producer_group: str
    #: The alias of the database with the barrier's table, in whose transactions `send` may be called.
    database: str = "default"
    #: The aliases of further databases with the barrier's table. The transactions of each one have a producer group of
    #: their own: PRODUCER_GROUP, a hyphen and the alias.
    more_databases: Sequence[str] = ()
    on_unavailable: OnUnavailable = "fail"
    #: The secrets of the view that answers checks; two while one is being rotated.
    check_secrets: Sequence[str] = field(default=(), repr=False)

    @property
    def databases(self) -> Sequence[str]:
        """The aliases of the databases whose transactions may call `send`."""
        return (self.database, *self.more_databases)

    @classmethod
    def read(cls, given: Mapping[str, Any] | None) -> Self:
        """Validates the setting. Raises ImproperlyConfigured with the missing or unknown key.

        With the URL `memory:`, no other key is needed.
        """
        given = given or {}
        if given.get("URL") == MEMORY:
            given = {**_OF_MEMORY, **given}
        known = {field.name.upper(): field for field in fields(cls)}
        missing = [name for name, field in known.items() if field.default is MISSING and not given.get(name)]
        unknown = [name for name in given if name not in known]
        if missing or unknown:
            complaints = [f"needs {name}" for name in missing] + [f"has no key {name}" for name in unknown]
            raise ImproperlyConfigured(f"MQBROKER {', '.join(complaints)}: its keys are {', '.join(known)}.")
        return cls(**{name.lower(): value for name, value in given.items()})
