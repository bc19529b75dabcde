"""Access as a Django app."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """API keys, the roles of console users, and the audit."""

    name = "access"
