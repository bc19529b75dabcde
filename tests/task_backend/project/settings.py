"""A Django project on the databases of the environment, with a task backend for one of them and one for several."""

import json
import os
from typing import Any
from urllib.parse import urlsplit

from django import VERSION

ENGINES = {"postgresql": "postgresql", "mysql": "mysql", "sqlite": "sqlite3"}


def database(url: str) -> dict[str, Any]:
    """A database of DATABASES, by its URL."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": parts.path, "OPTIONS": {"timeout": 20}}
    if parts.scheme == "mysql":
        import pymysql

        pymysql.install_as_MySQLdb()
    return {
        "ENGINE": f"django.db.backends.{ENGINES[parts.scheme]}",
        "HOST": parts.hostname,
        "PORT": parts.port,
        "USER": parts.username,
        "PASSWORD": parts.password or "",
        "NAME": parts.path[1:],
    }


given = json.loads(os.environ["PROJECT"])
DATABASES = {alias: database(url) for alias, url in given["databases"].items()}
SECRET_KEY = "of the tests"
USE_TZ = True
ROOT_URLCONF = "tests.barrier.no_urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["mqbroker_client.contrib.django", "tests.task_backend.project"]
INSTALLED_APPS += ["django_tasks"] if VERSION < (6, 0) else []
INSTALLED_APPS += given.get("apps", [])
DATABASE_ROUTERS = ["tests.task_backend.project.routing.Router"]
MQBROKER = {
    "URL": os.environ["MQBROKER_URL"],
    "API_KEY": os.environ["MQBROKER_API_KEY"],
    "PRODUCER_GROUP": given["group"],
    "MORE_DATABASES": ["other"],
    **given.get("mqbroker", {}),
}
BACKEND = "mqbroker_client.contrib.django.tasks.Backend"
OPTIONS = {"TOPIC_PREFIX": f"{given['group']}-", "MAX_RETRIES": 2, **given.get("options", {})}
QUEUES = ["default", "mail"]
TASKS = {
    "default": {"BACKEND": BACKEND, "QUEUES": QUEUES, "OPTIONS": OPTIONS},
    "strict": {"BACKEND": BACKEND, "QUEUES": QUEUES, "OPTIONS": {**OPTIONS, "OUTSIDE": "refuse"}},
    "other": {"BACKEND": BACKEND, "QUEUES": QUEUES, "OPTIONS": {**OPTIONS, "DATABASE": "other"}},
    "loose": {"BACKEND": BACKEND, "QUEUES": QUEUES, "OPTIONS": {**OPTIONS, "ATOMIC": False}},
    **given.get("tasks", {}),
}
