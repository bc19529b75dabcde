"""Actions whose outcome is shown once, in the answer to the request: new secrets and keys, and trials.

The request itself runs these actions, because no row may keep a secret to show it later.
"""

from collections.abc import Callable
from dataclasses import dataclass

from access import audit, keys
from access.audit import Signature, picture
from console.actions import configuration
from console.actions.shapes import Kind, Parameters
from delivery.push import registry as subscriptions
from transactions import endpoints
from transactions import registry as producer_groups
from transactions.checks import trials


@dataclass(frozen=True, slots=True)
class Shown:
    """The lines that the page shows after the action: pairs of a name and a value. `secret` is a value that is shown
    only on this page.
    """

    lines: tuple[tuple[str, str], ...]
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class Once(Kind):
    """A kind of action whose page shows its outcome only once, because the outcome contains a secret."""

    page = "once"
    run: Callable[[str, Parameters, Signature], Shown]


def make_key(target: str, values: Parameters, signature: Signature) -> Shown:
    """Creates an API key with this name, these scopes and limits, until `expires_at`.

    Raises MessageIllegal for a name, a scope or a limit that breaks a rule.
    """
    keys.validate_name(target)
    with audit.change(signature, "key.make", target) as change:
        row, key = keys.make(target, values)
        change.after = picture(row)
    limits = tuple((limit.label, str(values[limit.name])) for limit in keys.LIMITS if limit.name in values)
    return Shown((("Name", row.name), ("Scopes", ", ".join(row.scopes)), *limits), key)


def rotate_endpoint(target: str, values: Parameters, signature: Signature) -> Shown:
    """Gives an endpoint a new secret; for a day the old secret signs, too."""
    with audit.change(signature, "endpoint.rotate_secret", target) as change:
        found = configuration.endpoint(target)
        change.before = picture(found)
        endpoint = endpoints.rotate_secret(found, None)
        change.after = picture(endpoint)
    return Shown((("Endpoint", endpoint.url),), endpoint.secret)


def register_endpoint(target: str, values: Parameters, signature: Signature) -> Shown:
    """Registers an endpoint of a producer group; an existing endpoint keeps its secret."""
    with audit.change(signature, "endpoint.register", f"{target} {values['url']}") as change:
        endpoint, made = endpoints.register(producer_groups.find(target), values)
        change.after = picture(endpoint)
    return Shown((("Endpoint", endpoint.url),), endpoint.secret if made else None)


def make_subscription(target: str, values: Parameters, signature: Signature) -> Shown:
    """Creates a subscription of this name. Raises MessageIllegal when it exists already."""
    with audit.change(signature, "subscription.put", target) as change:
        configuration.PUSH.require_absent(target, subscriptions.named(target))
        row, _ = subscriptions.put(target, values)
        change.after = picture(row)
    return Shown((("Subscription", row.name), ("Server", row.url)), row.secret)


def rotate_push(target: str, values: Parameters, signature: Signature) -> Shown:
    """Gives a subscription a new secret; for a day the old secret signs, too."""
    with audit.change(signature, "subscription.rotate_secret", target) as change:
        found = subscriptions.find(target)
        change.before = picture(found)
        row = subscriptions.rotate_secret(found, None)
        change.after = picture(row)
    return Shown((("Subscription", row.name), ("Server", row.url)), row.secret)


def try_endpoint(target: str, values: Parameters, signature: Signature) -> Shown:
    """Sends a trial: a signed check without a transaction."""
    with audit.change(signature, "endpoint.test", target):
        found = configuration.endpoint(target)
    trial = trials.ask(found)
    words = "would be understood" if trial.ok else "would decide nothing"
    lines = (("Endpoint", found.url), ("Its answer to a check", words), ("Reason", trial.reason))
    return Shown((*lines, ("Outcome", trial.outcome), ("Milliseconds", f"{trial.latency_ms:.0f}")))


KINDS = (
    Once("key.make", "Make an API key", "Make an API key", make_key, noun="API key", fields=keys.FIELDS, makes=True),
    Once(
        "endpoint.register",
        "Register an endpoint",
        "Register an endpoint",
        register_endpoint,
        noun="producer group",
        fields=endpoints.FIELDS,
    ),
    Once(
        "endpoint.rotate_secret",
        "Give the endpoint a new secret",
        "New secret",
        rotate_endpoint,
        noun="endpoint",
        grave=True,
    ),
    Once("endpoint.test", "Try the endpoint", "Try", try_endpoint, noun="endpoint"),
    Once(
        "subscription.make",
        "Make a subscription",
        "Make a subscription",
        make_subscription,
        noun="subscription",
        right="subscription.put",
        fields=(*subscriptions.AIM, *subscriptions.PACE),
        makes=True,
    ),
    Once(
        "subscription.rotate_secret",
        "Give the subscription a new secret",
        "New secret",
        rotate_push,
        noun="subscription",
        grave=True,
    ),
)
