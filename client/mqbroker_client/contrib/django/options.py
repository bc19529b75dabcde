"""The setting MQBROKER, read and validated once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self, get_args

from django.core.exceptions import ImproperlyConfigured

from mqbroker_client.barrier.steps import OnUnavailable
from mqbroker_client.core import checks, requests
from mqbroker_client.core.limits import NAME
from mqbroker_client.core.rules import NAME_CHARACTERS

#: The URL that stands for the broker within the process, for tests.
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
    #: The aliases of further databases with the barrier's table. The transactions of each have a separate producer
    #: group: PRODUCER_GROUP, a hyphen and the alias.
    more_databases: Sequence[str] = ()
    on_unavailable: OnUnavailable = "fail"
    #: The secrets of the view that answers checks; during a rotation the old and the new one.
    check_secrets: Sequence[str] = field(default=(), repr=False)

    @property
    def databases(self) -> Sequence[str]:
        """The aliases of the databases whose transactions may call `send`."""
        return (self.database, *self.more_databases)

    @classmethod
    def read(cls, given: Mapping[str, Any] | None) -> Self:
        """Validates the setting. Raises ImproperlyConfigured with each missing or unknown key, or each wrong value.

        With the URL `memory:`, no other key is needed.
        """
        if not isinstance(given or {}, Mapping):
            raise ImproperlyConfigured(f"MQBROKER is a dictionary, not {given!r}.")
        given = given or {}
        if given.get("URL") == MEMORY:
            given = {**_OF_MEMORY, **given}
        known = {field.name.upper(): field for field in fields(cls)}
        missing = [name for name, field in known.items() if field.default is MISSING and not given.get(name)]
        unknown = [name for name in given if name not in known]
        if missing or unknown:
            complaints = [f"needs {name}" for name in missing] + [f"has no key {name}" for name in unknown]
            raise ImproperlyConfigured(f"MQBROKER {', '.join(complaints)}: its keys are {', '.join(known)}.")
        options = cls(**{name.lower(): value for name, value in given.items()})
        if faults := [*options._faults()]:
            raise ImproperlyConfigured(f"MQBROKER has wrong values: {'; '.join(faults)}.")
        return options

    def _faults(self) -> Iterator[str]:
        """Each wrong value and a valid one. The key and the secrets are not shown."""
        if self.url != MEMORY and (fault := _fault_of_url(self.url)):
            yield fault
        if not isinstance(self.api_key, str) or not self.api_key.isprintable() or " " in self.api_key:
            yield "API_KEY is a text without blanks and line breaks"
        if self.on_unavailable not in get_args(OnUnavailable):
            yield f'ON_UNAVAILABLE is "fail" or "keep", not {self.on_unavailable!r}'
        if fault := _fault_of_secrets(self.check_secrets):
            yield fault
        if not isinstance(self.database, str):
            yield f"DATABASE is an alias of DATABASES, not {self.database!r}"
        elif not is_list_of_texts(self.more_databases):
            yield f"MORE_DATABASES is a list of aliases, not {self.more_databases!r}"
        elif len({*self.databases}) < len(self.databases):
            yield f"DATABASE and MORE_DATABASES name an alias twice: {', '.join(self.databases)}"
        else:
            yield from self._faults_of_groups()

    def _faults_of_groups(self) -> Iterator[str]:
        groups = {"PRODUCER_GROUP": self.producer_group}
        groups |= {
            f"PRODUCER_GROUP with the alias {alias}": f"{self.producer_group}-{alias}" for alias in self.more_databases
        }
        for what, group in groups.items():
            if not isinstance(group, str) or not is_name(group):
                yield f"{what} is at most {NAME_CHARACTERS} letters, digits, _, - and %, not {group!r}"


def is_name(text: str) -> bool:
    """Whether the broker accepts a text as the name of a topic or group."""
    return bool(NAME.fullmatch(text)) and len(text) <= NAME_CHARACTERS


def is_list_of_texts(given: object) -> bool:
    """Whether a value is a list or tuple of texts: a single text would be read as a list of its characters."""
    return isinstance(given, list | tuple) and all(isinstance(each, str) for each in given)


def _fault_of_url(url: object) -> str:
    if not isinstance(url, str) and not is_list_of_texts(url):
        return f"URL is the broker's address or a list of addresses, not {url!r}"
    try:
        requests.addresses(url)  # type: ignore[arg-type]  # was checked above to be a text or a list of texts
    except ValueError as problem:
        return f"URL: {problem}"
    return ""


def _fault_of_secrets(secrets: object) -> str:
    if not isinstance(secrets, str) and not is_list_of_texts(secrets):
        return "CHECK_SECRETS is a list of secrets"
    try:
        # A secret that is not set yet is empty: the view then refuses all checks, and `manage.py check` says so.
        if any(secrets):  # type: ignore[arg-type]  # was checked above to be a text or a list of texts
            checks.listed(secrets, "CHECK_SECRETS", "the broker's answer to the endpoint's registration")  # type: ignore[arg-type]  # was checked above to be a text or a list of texts
    except ValueError as problem:
        return str(problem)
    return ""
