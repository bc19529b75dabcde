"""The rows of django-tasks-db lie in the other database, as those of any queue beside the program's own database."""

from typing import Any

LABEL = "django_tasks_database"


class Router:
    """Routes one app."""

    def db_for_read(self, model: Any, **_: object) -> str | None:
        return "other" if model._meta.app_label == LABEL else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **_: object) -> bool | None:
        return db == "other" if app_label == LABEL else None
