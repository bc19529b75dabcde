"""The console as two Django apps: its pages, and Django's admin with the console's site."""

from typing import Any

from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin import apps as admin_apps
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks


class ConsoleConfig(AppConfig):
    """The operator's pages."""

    name = "console"
    default = True


class ConsoleAdminConfig(admin_apps.SimpleAdminConfig):
    """Django's admin, whose site is the operator's console.

    `mqbroker.urls` imports the site and its tables. Workers and commands do not import them, and so start in half of
    the time.
    """

    default_site = "console.site.ConsoleSite"

    def ready(self) -> None:
        checks.register(check_console, checks.Tags.admin)


def check_console(**given: Any) -> list[checks.CheckMessage]:
    """Django's checks of the admin, after the import of the tables that they check."""
    admin.autodiscover()
    found: list[checks.CheckMessage] = [*check_dependencies(**given), *check_admin_app(**given)]
    return found
