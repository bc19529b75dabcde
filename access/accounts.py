"""The registry of the console's users: listed, made, given a role and a password, and deleted.

One active admin always stays, so that operators never lose the access to the console.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.models import Q

from access import roles
from store.db import fields
from store.errors import MessageIllegal, Refusal

# Django's rule without the colon: only names of an identity provider's users contain a colon.
NAME = re.compile(r"[\w.@+-]{1,150}")
# A password of this many random bytes cannot be guessed; its user may choose another.
PASSWORD_BYTES = 15
ACTIVE = fields.Switch("active", "Active", help="Whether the user may sign in")
FIELDS = (
    fields.Choice(
        "role",
        "Role",
        help="viewer: reads everything but message bodies; operator: also decides, redrives, pauses and configures; "
        "admin: also has keys, secrets, users and deletes",
        component="Role",
        choices=roles.ROLES,
        default=roles.VIEWER,
    ),
    fields.Switch("bodies", "Message bodies", help="A viewer may read them, too. Operators and admins always may"),
)


class UserNotExist(Refusal):
    """There is no console user with this name."""

    code = "not_found"


@dataclass(frozen=True, slots=True)
class Account:
    """A console user. `role` is None for a user who may not sign in. `is_local`: the user signs in by a password."""

    name: str
    person: str
    role: str | None
    bodies: bool
    active: bool
    is_local: bool
    last_login: datetime | None


def of(user: User) -> Account:
    """The account of a stored user."""
    return Account(
        name=user.username,
        person=" ".join(filter(None, (user.get_full_name(), user.email))),
        role=roles.role_in(user),
        bodies=roles.BODIES in roles.groups_of(user),
        active=user.is_active,
        is_local=user.has_usable_password(),
        last_login=user.last_login,
    )


def picture(account: Account | None) -> dict[str, object] | None:
    """The fields of an account that the audit shows; None without an account."""
    if account is None:
        return None
    return {"role": account.role, "bodies": account.bodies, "active": account.active}


def page(after: str, count: int, matching: str = "") -> Sequence[Account]:
    """Accounts by name: the first `count` after `after` whose name or email contains `matching`, in any case."""
    named = Q(username__icontains=matching) | Q(email__icontains=matching)
    rows = User.objects.filter(named, username__gt=after).order_by("username").prefetch_related("groups")
    return [of(_with_groups(user)) for user in rows[:count]]


def _with_groups(user: User) -> User:
    """The user with the names of its groups in its cache. The list has read the groups of all its users at once."""
    setattr(user, roles.KEPT, frozenset(group.name for group in user.groups.all()))
    return user


def find(name: str) -> Account:
    """The account of this name. Raises UserNotExist."""
    return of(_find(User.objects.all(), name))


def _find(among: Any, name: str) -> User:
    user: User | None = among.filter(username=name).first()
    if user is None:
        raise UserNotExist(f"There is no console user {name[:150]!r}: the page Users lists them.")
    return user


def made_password() -> tuple[str, str]:
    """A new password, to be shown once, and its hash. Hashing takes 0.4 s, so it comes before the transaction."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    return password, make_password(password)


def make(name: str, hashed: str, given: Mapping[str, Any]) -> Account:
    """Creates a user with this hash of a password. Raises MessageIllegal for an invalid name, or one that is in use."""
    if not NAME.fullmatch(name):
        raise MessageIllegal(f"{name[:150]!r} is not a valid user name: give 1 to 150 letters, digits and _ . @ + -.")
    try:
        with transaction.atomic():
            user = User.objects.create(username=name, password=hashed)
    except IntegrityError as problem:
        raise MessageIllegal(f"There is already a user {name}: change this user, or choose another name.") from problem
    roles.assign(user, given.get("role") or roles.VIEWER, bodies=bool(given.get("bodies")))
    return of(user)


def change(name: str, given: Mapping[str, Any]) -> Account:
    """Changes FIELDS and ACTIVE of a user. Raises UserNotExist, and MessageIllegal for the last active admin."""
    with transaction.atomic():
        user = _locked(name)
        present = of(user)
        user.is_active = given.get("active", present.active)
        user.save(update_fields=["is_active"])
        roles.assign(user, given.get("role", present.role), bodies=given.get("bodies", present.bodies))
        _require_admin(name)
        return of(user)


def set_password(name: str, hashed: str) -> Account:
    """Replaces a user's password, which ends the user's sessions.

    Raises UserNotExist, and MessageIllegal for a user of an identity provider.
    """
    with transaction.atomic():
        user = _locked(name)
        if not user.has_usable_password():
            raise MessageIllegal(f"{name} signs in at the identity provider, and has no password here.")
        user.password = hashed
        user.save(update_fields=["password"])
        return of(user)


def remove(account: Account) -> None:
    """Deletes a user. Raises UserNotExist, and MessageIllegal for the last active admin."""
    with transaction.atomic():
        _locked(account.name).delete()
        _require_admin(account.name)


def _locked(name: str) -> User:
    """The user, in a transaction. Changes of users run one after another, so two admins cannot remove each other."""
    list(Group.objects.select_for_update().filter(name=roles.ADMIN))
    return _find(User.objects.select_for_update(), name)


def _require_admin(name: str) -> None:
    admins = Q(is_superuser=True) | Q(groups__name=roles.ADMIN)
    if not User.objects.filter(admins, is_active=True).exists():
        raise MessageIllegal(f"{name} is the last active admin: first give another user the role admin.")
