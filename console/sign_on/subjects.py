"""Users of the identity provider as users of the console: named by their subject, with the role of their claims."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User

from access import audit, roles
from access.audit import Outcome, Signature
from store.errors import NoPermission
from store.messages.texts import legible

# No form accepts a colon in a user name, so no local user has the name of a subject.
PREFIX = "oidc:"
MAX_SUBJECT = 150 - len(PREFIX)
# Columns of a user, the claims that fill them, and their lengths.
PERSON = (("email", "email", 254), ("first_name", "given_name", 150), ("last_name", "family_name", 150))


def signed_in(claims: Mapping[str, Any]) -> User:
    """The user of the claims, who has their role from now on; made at the first sign-on.

    Raises NoPermission for an inactive user, and for claims without a role; such claims also take an earlier role away.
    """
    name, granted = name_of(claims["sub"]), granted_by(claims.get(settings.SIGN_ON_ROLE_CLAIM))
    role = next((role for role in reversed(roles.ROLES) if role in granted), None)
    with audit.together():
        user = _kept(name, is_new=role is not None)
        if user is not None and user.is_active:
            _change(user, role, claims, bodies=roles.BODIES in granted)
    if role is None or user is None:
        raise NoPermission(
            f"The identity provider gives {name} no role: its claim {settings.SIGN_ON_ROLE_CLAIM} needs "
            f"{', '.join(roles.ROLES[:-1])} or {roles.ROLES[-1]}."
        )
    if not user.is_active:
        raise NoPermission(f"The console user {name} is not active: an admin changes this under Users.")
    return user


def name_of(subject: object) -> str:
    """The name of the console user for a subject. Raises NoPermission for a subject that cannot be a name."""
    if not (isinstance(subject, str) and subject.isascii() and subject.isprintable() and subject):
        raise NoPermission("The subject in the ID token is no printable ASCII text.")
    if len(subject) > MAX_SUBJECT:
        raise NoPermission(f"The subject in the ID token has more than {MAX_SUBJECT} characters.")
    return PREFIX + subject


def granted_by(claim: object) -> set[str]:
    """The words of the claim with roles: a text, or a list of texts."""
    return {str(word) for word in claim} if isinstance(claim, list) else {str(claim)}


def _kept(name: str, *, is_new: bool) -> User | None:
    if is_new:
        User.objects.get_or_create(username=name, defaults={"password": make_password(None)})
    return User.objects.select_for_update().filter(username=name).first()


def _change(user: User, role: str | None, claims: Mapping[str, Any], *, bodies: bool) -> None:
    before = roles.role_in(user)
    for column, claim, length in PERSON:
        setattr(user, column, legible(str(claims.get(claim, "")))[:length])
    user.save(update_fields=[column for column, *_ in PERSON])
    roles.assign(user, role, bodies=bodies)
    if before != role:
        signature = Signature("user", user.get_username(), reason=f"sign-on at {settings.SIGN_ON_ISSUER}")
        audit.write(signature, "user.change", Outcome(user.get_username(), {"role": role}, {"role": before}))
