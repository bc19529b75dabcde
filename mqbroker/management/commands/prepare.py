"""Prepares a database for the broker: migrates, and makes the first API key and console user."""

import json
import secrets
from typing import Any

import psycopg
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from access import keys, roles
from access.audit import Signature
from access.models import ApiKey
from console.cells import registry
from mqbroker.process import sealed_secrets
from store.db import guards, pooling
from store.db.conninfo import SESSION, conninfo
from store.errors import CellAway, Refusal

FIRST_KEY = "first key"
GIVEN_KEY = "given at the start"
ALL_SCOPES = ["manage", "metrics", "produce:*", "consume:*", "read:*"]
CONSOLE_USER = "admin"


class Command(BaseCommand):
    """Safe to repeat: existing objects stay as they are. Only a key or password that was just made is printed, once.

    A key that was given as an option is not printed, because the output is usually kept in a log.
    """

    # `./mq check` runs Django's checks. They import every page of the console, for which a deployment need not wait.
    requires_system_checks = ()

    help = "Migrate, make the first API key and console user, and print as JSON what was made."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--api-key",
            default=settings.API_KEY or None,
            help="give this API key every scope instead of making a key; MQBROKER_API_KEY is not in process lists",
        )
        parser.add_argument(
            "--cells",
            type=int,
            default=1,
            metavar="N",
            help="make databases of the control's server, c1 to c<N-1>, cells to try",
        )

    def handle(self, *args: Any, api_key: str | None, cells: int, **options: Any) -> None:
        require_database()
        call_command("migrate", interactive=False, verbosity=0)
        set_session_defaults()
        prepare_cells(cells)
        seal_plain_secrets()
        made = {"api_key": first_key(api_key), "console_user": None, "console_password": console_password()}
        if made["console_password"]:
            made["console_user"] = CONSOLE_USER
        self.stdout.write(json.dumps(made))


def require_database() -> None:
    """Raises CommandError with PostgreSQL's reason when no connection can be opened: the pool would only report a
    time-out.
    """
    try:
        guards.require_fit("mqbroker-prepare", direct=True)
        psycopg.connect(conninfo("mqbroker-prepare", direct=True)).close()
    except guards.Unfit as problem:
        raise CommandError(str(problem)) from None
    except psycopg.OperationalError as problem:
        called = "DATABASE_URL" if settings.DATABASE_POOLER == pooling.NONE else "DIRECT_DATABASE_URL"
        raise CommandError(f"{called} leads into no database: {' '.join(str(problem).split())}") from None


def set_session_defaults() -> None:
    """Stores the broker's session settings as defaults of the role, because a pooler does not pass them on."""
    if settings.DATABASE_POOLER != pooling.NONE:
        with psycopg.connect(conninfo("mqbroker-prepare", direct=True), autocommit=True) as session:
            pooling.set_defaults(session, SESSION)


def prepare_cells(count: int) -> None:
    """Creates cells on the control's server until there are `count`, and migrates all cells. Raises CommandError."""
    try:
        for number in range(1, count):
            registry.join_beside(f"c{number}", Signature("command", "manage.py prepare"))
        registry.migrate()
    except Refusal as problem:
        raise CommandError(problem.detail) from None


def seal_plain_secrets() -> None:
    """Encrypts secrets that were stored before keys were configured.

    Raises CommandError if a key is missing or a cell is away.
    """
    try:
        sealed_secrets.require_readable()
        sealed_secrets.reseal(plain_only=True)
    except (guards.Unfit, CellAway) as problem:
        raise CommandError(str(problem)) from None


def first_key(given: str | None) -> str | None:
    """The API key that was just made; None when a key was given or one already exists."""
    if given is not None:
        if not ApiKey.objects.filter(digest=keys.digest_of(given)).exists():
            keys.store_key(GIVEN_KEY, given, ALL_SCOPES)
        return None
    if ApiKey.objects.exists():
        return None
    key = keys.make_key()
    keys.store_key(FIRST_KEY, key, ALL_SCOPES)
    return key


def console_password() -> str | None:
    """The password of the console user that was just made; None when there is already a superuser."""
    users = get_user_model()
    if users.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    roles.assign(users.objects.create_superuser(CONSOLE_USER, password=password), roles.ADMIN, bodies=True)
    return password
