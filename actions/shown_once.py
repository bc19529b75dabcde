"""Actions whose outcome is shown once, in the answer to the request: new secrets and keys, and trials.

They are done within the request, for nothing may keep a secret to show it later.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from access import audit, keys
from access.audit import Signature, picture
from actions import configuration
from actions.errors import KindNotExist
from delivery.push import registry as subscriptions
from transactions import endpoints
from transactions import registry as producer_groups
from transactions.checks import trials

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the answer shows: lines of a name and a value; `secret` is not shown again."""

    lines: tuple[tuple[str, str], ...]
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class Once:
    """A kind of such action, with the fields that it needs beside its target."""

    action: str
    run: Callable[[str, Values, Signature], Shown]
    fields: tuple[str, ...] = ()
    # May be left empty.
    optional: tuple[str, ...] = ()


def make_key(target: str, values: Values, signature: Signature) -> Shown:
    """Makes an API key of this name with the scopes, apart by blanks, and the limits that are given.

    Raises MessageIllegal for a name, a scope or a limit that breaks a rule.
    """
    scopes, limits = values["scopes"].split(), keys.limits_of(values)
    keys.validate(target, scopes)
    with audit.change(signature, "key.make", target) as change:
        row, key = keys.make(target, scopes, limits=limits)
        change.after = picture(row)
    lines = tuple((name.replace("_", " ").capitalize(), str(limit)) for name, limit in limits.items())
    return Shown((("Name", row.name), ("Scopes", ", ".join(scopes)), *lines), key)


def rotate_endpoint(target: str, values: Values, signature: Signature) -> Shown:
    """Gives an endpoint a new secret; for a day the old one signs, too."""
    with audit.change(signature, "endpoint.rotate_secret", target) as change:
        found = configuration.endpoint(target)
        change.before = picture(found)
        endpoint = endpoints.rotate_secret(found, None)
        change.after = picture(endpoint)
    return Shown((("Endpoint", endpoint.url),), endpoint.secret)


def register_endpoint(target: str, values: Values, signature: Signature) -> Shown:
    """Registers an endpoint of a producer group; one that is there already keeps its secret."""
    with audit.change(signature, "endpoint.register", f"{target} {values['url']}") as change:
        endpoint, made = endpoints.register(producer_groups.find(target), {"url": values["url"]})
        change.after = picture(endpoint)
    return Shown((("Endpoint", endpoint.url),), endpoint.secret if made else None)


def rotate_subscription(target: str, values: Values, signature: Signature) -> Shown:
    """Gives a subscription a new secret; for a day the old one signs, too."""
    with audit.change(signature, "subscription.rotate_secret", target) as change:
        found = subscriptions.find(target)
        change.before = picture(found)
        row = subscriptions.rotate_secret(found, None)
        change.after = picture(row)
    return Shown((("Subscription", row.name), ("Server", row.url)), row.secret)


def try_endpoint(target: str, values: Values, signature: Signature) -> Shown:
    """Sends a signed check about no transaction."""
    with audit.change(signature, "endpoint.test", target):
        found = configuration.endpoint(target)
    trial = trials.ask(found)
    words = "would be understood" if trial.ok else "would decide nothing"
    lines = (("Endpoint", found.url), ("Its answer to a check", words), ("Reason", trial.reason))
    return Shown((*lines, ("Outcome", trial.outcome), ("Milliseconds", f"{trial.latency_ms:.0f}")))


KINDS: Mapping[str, Once] = {
    "key.make": Once("key.make", make_key, ("scopes",), tuple(keys.MAX_LIMITS)),
    "endpoint.register": Once("endpoint.register", register_endpoint, ("url",)),
    "endpoint.rotate_secret": Once("endpoint.rotate_secret", rotate_endpoint),
    "endpoint.test": Once("endpoint.test", try_endpoint),
    "subscription.rotate_secret": Once("subscription.rotate_secret", rotate_subscription),
}


def find(name: str) -> Once:
    """The kind of this name.

    Raises KindNotExist.
    """
    if name not in KINDS:
        raise KindNotExist(f"There is no action {name[:60]!r}.")
    return KINDS[name]


def run(name: str, target: str, values: Values, signature: Signature) -> Shown:
    """Does it. Raises what its registry refuses."""
    return find(name).run(target, values, signature)
