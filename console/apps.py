"""The console as two Django apps: its pages, and Django's admin with the console's site."""

from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import sites
from django.utils.module_loading import import_string


class ConsoleConfig(AppConfig):
    """The operator's pages."""

    name = "console"
    default = True


class ConsoleAdminConfig(admin_apps.AdminConfig):
    """Django's admin, whose site is the operator's console."""

    default = False
    default_site = "console.site.ConsoleSite"

    def ready(self) -> None:
        # Unfold's app, ready before this one, has put a plain site of its own in Django's place.
        admin.site = sites.site = import_string(self.default_site)()
        super().ready()
