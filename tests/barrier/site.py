"""A Django project on one of the places, without files of its own. As a program it is the project's `manage.py`."""

import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import execute_from_command_line

from tests.barrier.places import mysql_parts

OF_DATABASE = ("ATOMIC_REQUESTS", "AUTOCOMMIT")
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


def set_up(words: str, broker_url: str, **more: Any) -> None:
    """`more` are keys of MQBROKER, of the database in OF_DATABASE, POOL of its OPTIONS, and URLS, the URLconf."""
    place = json.loads(words)
    urls = more.pop("URLS", "tests.barrier.site_urls")
    given = {name: more.pop(name) for name in OF_DATABASE if name in more}
    pool = {"pool": more.pop("POOL")} if "POOL" in more else {}
    default = database(place["url"], place["isolation"]) | given
    default["OPTIONS"] = default.get("OPTIONS", {}) | pool
    key = os.environ["API_KEY"]
    settings.configure(
        DATABASES={"default": default},
        INSTALLED_APPS=["mqbroker_client.contrib.django"],
        MQBROKER={"URL": broker_url, "API_KEY": key, "PRODUCER_GROUP": place["group"], **more},
        USE_TZ=True,
        ROOT_URLCONF=urls,
        ALLOWED_HOSTS=["*"],
    )
    django.setup()


if __name__ == "__main__":
    set_up(sys.argv[1], sys.argv[2], **json.loads(os.environ.get("MORE_SETTINGS", "{}")))
    execute_from_command_line(["manage.py", *sys.argv[3:]])
