"""A Django project on one of the places, without files of its own. As a program it is the project's `manage.py`."""

import json
import sys
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import execute_from_command_line

from tests.barrier.places import GROUP, mysql_parts

ISOLATIONS = {"read committed": 2, "repeatable read": 3, "serializable": 4}


def database(url: str, isolation: str | None) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": parts.path, "OPTIONS": {"timeout": 20}}
    if parts.scheme == "mysql":
        import pymysql

        pymysql.install_as_MySQLdb()
        given = mysql_parts(url)
        return {
            "ENGINE": "django.db.backends.mysql",
            **{name.upper(): given[name] for name in ("host", "port", "user")},
            "NAME": given["database"],
        }
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": parts.hostname,
        "PORT": parts.port,
        "USER": parts.username,
        "PASSWORD": parts.password,
        "NAME": parts.path[1:],
        "OPTIONS": {"isolation_level": ISOLATIONS[isolation]} if isolation else {},
    }


def set_up(words: str, broker_url: str, api_key: str, **more: Any) -> None:
    place = json.loads(words)
    settings.configure(
        DATABASES={"default": database(place["url"], place["isolation"])},
        INSTALLED_APPS=["mqbroker_client.django"],
        MQBROKER={"URL": broker_url, "API_KEY": api_key, "PRODUCER_GROUP": GROUP, **more},
        USE_TZ=True,
    )
    django.setup()


if __name__ == "__main__":
    set_up(sys.argv[1], "http://127.0.0.1:1", "key")
    execute_from_command_line(["manage.py", *sys.argv[2:]])
