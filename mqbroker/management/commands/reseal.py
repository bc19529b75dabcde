"""`manage.py reseal`: encrypts the secrets of endpoints and subscriptions with the first key, after a key rotation."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.cells import registry
from mqbroker.process import sealed_secrets
from store.db.sealing import SecretUnreadable
from store.errors import CellAway


class Command(BaseCommand):
    """Safe to repeat, and safe while the broker runs: a secret that a caller changes meanwhile is not overwritten."""

    # `./mq check` runs Django's checks. They import every page of the console, for which a deployment need not wait.
    requires_system_checks = ()

    help = "Seal every stored secret under the first key of MQBROKER_SECRETS_KEYS."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--replace-unreadable",
            action="store_true",
            help="give endpoints and subscriptions a new secret if the key of their secret is lost",
        )

    def handle(self, *args: Any, replace_unreadable: bool, **options: Any) -> None:
        if not settings.SECRETS_KEYS:
            raise CommandError("MQBROKER_SECRETS_KEYS is empty: give at least one key.")
        replaced = sealed_secrets.replace_unreadable() if replace_unreadable else 0
        try:
            # Updates the copies of the secrets in other cells.
            registry.heal()
            resealed = sealed_secrets.reseal()
        except CellAway as problem:
            raise CommandError(
                f"{problem} Repeat this when it is back: its copies are sealed under the old key."
            ) from None
        except SecretUnreadable as problem:
            raise CommandError(f"{problem}: add it to the end of the list, or use --replace-unreadable.") from None
        self.stdout.write(f"{resealed} secrets resealed, {replaced} replaced.")
