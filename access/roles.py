"""Roles: what a console user may do, in the console and at /v1 alike.

A role is a group of Django's, and each role may also do what the roles before it may:

- viewer: reads everything but message bodies, which the group `bodies` adds.
- operator: decides, checks, redrives, resets, recalls, pauses and configures, and reads bodies.
- admin: has keys, secrets, users and deletes.
"""

from typing import Any

from django.contrib.auth.models import Group

from store.errors import NoPermission

ROLES = VIEWER, OPERATOR, ADMIN = ("viewer", "operator", "admin")
# The group of viewers that read message bodies, too.
BODIES = "bodies"

# What an operator may do. Every other action, one that is not named anywhere too, is an admin's: keys, users, deletes,
# and what gives a secret or an address that messages are sent to.
OPERATORS = frozenset(
    (
        "transaction.check",
        "transaction.commit",
        "transaction.rollback",
        "discarded.resume",
        "topic.put",
        "producer_group.put",
        "endpoint.change",
        "endpoint.test",
        "consumer_group.put",
        "offsets.reset",
        "dead_letter.redrive",
        "subscription.change",
        "message.recall",
        "action.steer",
    )
)


def of(user: Any) -> str | None:
    """The role of a console user, None for one that may not even look; read once per request."""
    return role_in(user) if user.is_authenticated and user.is_active else None


def role_in(user: Any) -> str | None:
    """The role of a user, also of one that is not active; a superuser is an admin."""
    if user.is_superuser:
        return ADMIN
    return next((role for role in reversed(ROLES) if role in groups_of(user)), None)


def may(user: Any, action: str) -> bool:
    """Whether a console user may do this."""
    role = of(user)
    return role == ADMIN or (role == OPERATOR and action in OPERATORS)


def require(user: Any, action: str) -> None:
    """Raises NoPermission, which names the role that may."""
    if not may(user, action):
        least = OPERATOR if action in OPERATORS else ADMIN
        raise NoPermission(
            f"The console user {user.get_username()!r} is {of(user) or 'without a role'} and may not do this "
            f"({action}): sign in as {least}, or use an API key with the scope manage."
        )


def may_read_bodies(user: Any) -> bool:
    """Whether a console user may see the bodies of messages."""
    return of(user) in (OPERATOR, ADMIN) or (of(user) == VIEWER and BODIES in groups_of(user))


def assign(user: Any, role: str, *, bodies: bool) -> None:
    """Gives a stored user one role and takes every other one away; `bodies` counts for a viewer."""
    wanted = {role, BODIES} if bodies else {role}
    user.is_staff, user.is_superuser = True, role == ADMIN
    user.save(update_fields=["is_staff", "is_superuser"])
    user.groups.remove(*Group.objects.filter(name__in={*ROLES, BODIES} - wanted))
    user.groups.add(*Group.objects.filter(name__in=wanted))
    user.__dict__.pop("_roles", None)


def groups_of(user: Any) -> frozenset[str]:
    """The names of a user's groups. Kept with the user, whom each request loads anew."""
    if not hasattr(user, "_roles"):
        user._roles = frozenset() if user.pk is None else frozenset(user.groups.values_list("name", flat=True))
    found: frozenset[str] = user._roles
    return found
