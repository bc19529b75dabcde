"""Callers: the holders of API keys, and what their scopes and limits let them do."""

import fnmatch
import time
from dataclasses import dataclass, field

from access.key_limits import Allowance
from store.errors import NoPermission
from store.naming import namespaces
from store.naming.names import MAX_CHARACTERS

# The most results of `may` that are kept for one caller. When there are more, all kept results are dropped.
MAX_ALLOWED = 1000
METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of an API key: the key's name, scopes and limits.

    A key with a namespace may use only names of the namespace, and its scopes contain bare names.
    """

    name: str
    scopes: tuple[str, ...]
    is_authenticated: bool = True
    namespace: str | None = None
    # The messages and bytes that the key may still send in this process; None: no limits.
    allowance: Allowance | None = field(default=None, repr=False, compare=False)
    # Results of `may`, kept because matching the patterns costs 1 µs per scope in each request.
    _allowed: dict[tuple[str, str], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def may_manage(self) -> bool:
        """Whether the key has the scope `manage`, of the whole broker."""
        return "manage" in self.scopes and self.namespace is None

    def may_manage_names(self, *names: str) -> bool:
        """Whether the key has the scope `manage`, for topics and groups of these whole names."""
        return "manage" in self.scopes and all(self._bare(name) is not None for name in names)

    def _bare(self, name: str) -> str | None:
        return name if self.namespace is None else namespaces.bare(self.namespace, name)

    def may(self, verb: str, name: str) -> bool:
        """Whether the key allows `produce` or `read` on a topic, or `consume` in a group, of this name."""
        if len(name) > MAX_CHARACTERS:
            name = name[: MAX_CHARACTERS + 1]
        allowed = self._allowed.get((verb, name))
        if allowed is None:
            if len(self._allowed) >= MAX_ALLOWED:
                self._allowed.clear()
            bare = self._bare(name)
            allowed = bare is not None and any(fnmatch.fnmatchcase(f"{verb}:{bare}", scope) for scope in self.scopes)
            self._allowed[verb, name] = allowed
        return allowed

    def may_everywhere(self, verb: str) -> bool:
        """Whether the key allows `produce` or `read` on every topic, or `consume` in every group, of the broker."""
        return f"{verb}:*" in self.scopes and self.namespace is None

    def require(self, verb: str, name: str) -> None:
        """Raises NoPermission unless the key allows `verb` (produce, consume or read) on the topic or group `name`."""
        if not self._allowed.get((verb, name)) and not self.may(verb, name):
            raise NoPermission(f"The key {self.name!r} lacks the scope {verb}:{name[:140]}: add it at /v1/api-keys.")

    def require_manage(self) -> None:
        """Raises NoPermission unless the key may manage the whole broker."""
        if not self.may_manage:
            self._require_whole("manage")
            raise NoPermission(f"The key {self.name!r} lacks the scope manage: add it at /v1/api-keys.")

    def require_manage_names(self, *names: str) -> None:
        """Raises NoPermission unless the key may manage topics and groups of these whole names."""
        if not self.may_manage_names(*names):
            raise NoPermission(f"The key {self.name!r} lacks the scope manage: add it at /v1/api-keys.")

    def _require_whole(self, scope: str) -> None:
        if self.namespace is not None:
            raise NoPermission(
                f"The key {self.name!r} is bound to the namespace {self.namespace}, and this request concerns "
                f"the whole broker: use a key without a namespace, with the scope {scope}."
            )

    def require_metrics(self, *, is_narrowed: bool) -> None:
        """Raises NoPermission unless the key may read metrics, or manage.

        With `is_narrowed` a key of a namespace may also read the metrics, because they are limited to the names of the
        namespace.
        """
        if not is_narrowed:
            self._require_whole(METRICS)
        if not ("manage" in self.scopes or METRICS in self.scopes):
            raise NoPermission(f"The key {self.name!r} lacks the scope metrics: add it at /v1/api-keys.")

    def has_any(self, *verbs: str) -> bool:
        """Whether the key has a scope with one of these verbs, for any name."""
        return any(scope.partition(":")[0] in verbs for scope in self.scopes)

    def require_any(self, *verbs: str) -> None:
        """Raises NoPermission unless the key has a scope with one of these verbs, for any name."""
        if not self.has_any(*verbs):
            raise NoPermission(f"The key {self.name!r} has no {' or '.join(verbs)} scope: add one at /v1/api-keys.")

    def may_see(self, topic: str, *, is_visible: bool) -> bool:
        """Whether the key may look up a message of the topic.

        Only producers and operators may see messages that consumers cannot see: undecided, rolled back or delayed ones.
        """
        return self.may("read", topic) if is_visible else self.may_manage_names(topic) or self.may("produce", topic)

    def spend(self, messages: int, size: int) -> None:
        """Counts the messages and bytes (`size`) of a request against the key's limits.

        Raises RateLimited when one of the limits is used up.
        """
        if self.allowance is not None:
            self.allowance.spend(messages, size, time.monotonic())

    def may_receive(self, group: str, topic: str) -> bool:
        """Whether the key may receive the topic's messages in the group."""
        return self.may("consume", group) and self.may("read", topic)

    def require_receive(self, group: str, topic: str) -> None:
        """Raises NoPermission unless the key may receive the topic's messages in the group."""
        self.require("consume", group)
        self.require("read", topic)
