"""Names the console's two Django apps: its pages, and Django's admin with our site in it."""

from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import sites
from django.utils.module_loading import import_string


class ConsoleConfig(AppConfig):
    """Pages that show what the apps below know; acts only by calling them."""

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
