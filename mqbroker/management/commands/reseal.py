"""`manage.py reseal`: seals the secrets of endpoints and subscriptions under the first key, after a rotation."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.cells import registry
from mqbroker.process import sealed_secrets
from store.db.sealing import SecretUnreadable
from store.errors import CellAway


class Command(BaseCommand):
    """Safe to repeat, and beside a running broker: a secret that changes meanwhile is left as it is."""

    # `./mq check` makes them: they import every page of the console, which a deployment need not wait for.
    requires_system_checks = ()

    help = "Seal every stored secret under the first key of MQBROKER_SECRETS_KEYS."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--replace-unreadable",
            action="store_true",
            help="where the key of a secret is lost: give its endpoint or subscription a new one",
        )

    def handle(self, *args: Any, replace_unreadable: bool, **options: Any) -> None:
        if not settings.SECRETS_KEYS:
            raise CommandError("MQBROKER_SECRETS_KEYS is empty: give at least one key.")
        replaced = sealed_secrets.replace_unreadable() if replace_unreadable else 0
        try:
            # The copies in other cells have the secrets that were replaced.
            registry.heal()
            resealed = sealed_secrets.reseal()
        except CellAway as problem:
            raise CommandError(
                f"{problem} Repeat this when it is back: its copies are sealed under the old key."
            ) from None
        except SecretUnreadable as problem:
            raise CommandError(f"{problem}: add it to the end of the list, or use --replace-unreadable.") from None
        self.stdout.write(f"{resealed} secrets resealed, {replaced} replaced.")
