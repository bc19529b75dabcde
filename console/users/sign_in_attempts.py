"""Limits attempts at passwords, before hashing, for all web processes together, by PostgreSQL's clock.

An attempt from an unknown browser counts for the user name and for the address. A browser that has signed in as this
user before has separate attempts, so that strangers who guess cannot lock the user out.
"""

import hashlib
import ipaddress
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from console.models import SLOTS, SignInLimit

COOKIE = "mq_browser"
COOKIE_DAYS = 90
SALT = "console.attempts"


@dataclass(frozen=True)
class Allowance:
    """How many attempts may be made at once, and after how many seconds each attempt is available again."""

    attempts: int
    seconds_each: int


# These rates allow at most 2,880 guesses a day at one user, from any number of addresses.
OF_USER = OF_BROWSER = Allowance(attempts=10, seconds_each=30)
# An address has more attempts than a user, because a whole office may share it.
OF_ADDRESS = Allowance(attempts=20, seconds_each=6)

Uses = Mapping[int, Allowance]


class Left(NamedTuple):
    """The state of a slot, and the database's time."""

    slot: int
    free_at: datetime
    now: datetime


def to_sign_in(request: HttpRequest, name: str) -> Uses:
    """The slots that an attempt to sign in under this name uses."""
    browser = browser_of(request, name)
    if browser is not None:
        return {slot("browser", browser): OF_BROWSER}
    return {slot("user", name): OF_USER, slot("address", network_of(address_of(request))): OF_ADDRESS}


def to_sign_on(request: HttpRequest) -> Uses:
    """The slot that the beginning of a sign-on at an identity provider uses."""
    return {slot("sign-on", network_of(address_of(request))): OF_ADDRESS}


def to_change_password(user_id: int) -> Uses:
    """The slots that an attempt at the user's own old password uses."""
    return {slot("change", str(user_id)): OF_USER}


def take(uses: Uses) -> int:
    """Takes an attempt from each slot and returns 0.

    If a slot has no attempt left, takes no attempt and returns the seconds to wait. Rows are locked in the order of
    slots, so two attempts that share slots cannot deadlock.
    """
    with transaction.atomic():
        rows = locked(sorted(uses))
        wait_seconds = max(wait(row, uses[row.slot]) for row in rows)
        if wait_seconds > 0:
            return math.ceil(wait_seconds)
        for row in rows:
            free_at = max(row.free_at, row.now) + timedelta(seconds=uses[row.slot].seconds_each)
            SignInLimit.objects.filter(slot=row.slot).update(free_at=free_at)
    return 0


def give_back(uses: Uses) -> None:
    """Gives back the attempts of a right password, because only wrong passwords are limited."""
    for number, allowance in uses.items():
        back = timedelta(seconds=allowance.seconds_each)
        SignInLimit.objects.filter(slot=number).update(free_at=F("free_at") - back)


def locked(numbers: list[int]) -> list[Left]:
    """The locked rows of these slots; missing rows are created."""
    SignInLimit.objects.bulk_create([SignInLimit(slot=number) for number in numbers], ignore_conflicts=True)
    rows = SignInLimit.objects.select_for_update().filter(slot__in=numbers).order_by("slot")
    return [Left(*row) for row in rows.values_list("slot", "free_at", Now())]


def wait(row: Left, allowance: Allowance) -> float:
    """The number of seconds until a slot allows an attempt; 0 or less: the slot allows an attempt now."""
    return (row.free_at - row.now).total_seconds() - (allowance.attempts - 1) * allowance.seconds_each


def slot(kind: str, value: str) -> int:
    """The number of the slot in which attempts of a user, an address or a browser are counted."""
    digest = hashlib.sha256(f"{kind}:{value}".encode()).digest()
    return int.from_bytes(digest[:8]) % SLOTS


def address_of(request: HttpRequest) -> str:
    """The address of a request's sender: the last hop that is not one of TRUSTED_PROXIES."""
    proxies = [ipaddress.ip_network(network) for network in settings.TRUSTED_PROXIES]
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
    address = str(request.META.get("REMOTE_ADDR", ""))
    while hops and is_within(address, proxies):
        address = hops.pop() or address
    return address


def is_within(address: str, networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    """Whether an address belongs to one of these networks."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


def network_of(address: str) -> str:
    """The network that counts as one address; for IPv6 a /64, because a customer has at least a /64."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        mapped = parsed.ipv4_mapped
        return str(mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return address


def browser_of(request: HttpRequest, name: str) -> str | None:
    """The mark of a browser that has signed in under this name before."""
    cookie = request.COOKIES.get(COOKIE, "")
    try:
        of, mark = signing.loads(cookie, salt=SALT, max_age=timedelta(days=COOKIE_DAYS))
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return str(mark) if of == name else None


def remember_browser(answer: HttpResponseBase, name: str) -> None:
    """Marks the browser that has just signed in under this name."""
    answer.set_cookie(
        COOKIE,
        signing.dumps([name, secrets.token_hex(16)], salt=SALT),
        max_age=timedelta(days=COOKIE_DAYS),
        path="/console/",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
