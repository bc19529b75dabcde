"""`manage.py prepare` prints what it made, once, and never a key that was given: its output ends up in logs."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from access.keys import digest_of
from mqbroker.embedded import commands
from tests.broker import databases, forks

KEY = "mq_given_by_an_operator"


class Empty:
    """A database that is not prepared yet."""

    def __init__(self, url: str) -> None:
        self.url = url

    def prepare(self, *words: str, **variables: str) -> tuple[dict[str, Any], str]:
        """What was made, and all that was said."""
        environment = os.environ | {"DATABASE_URL": self.url} | variables
        command = commands.manage("prepare", *words)
        done = forks.run(command, environment)
        done.check_returncode()
        return json.loads(done.stdout), done.stdout + done.stderr

    def lets_in(self, key: str) -> bool:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("SELECT 1 FROM api_key WHERE digest = %s", (digest_of(key),))
            return found.fetchone() is not None


@pytest.fixture
def empty() -> Iterator[Empty]:
    with databases.fresh() as url:
        yield Empty(url)


def test_a_key_that_is_made_is_printed_once(empty: Empty) -> None:
    made, _ = empty.prepare()
    again, _ = empty.prepare()

    assert empty.lets_in(made["api_key"])
    assert made["console_password"]
    assert again == {"api_key": None, "console_user": None, "console_password": None}


def test_a_refused_sign_in_is_named(empty: Empty) -> None:
    place = urlsplit(empty.url)
    url = place._replace(netloc=f"nobody:wrong@{place.hostname}:{place.port}").geturl()

    with pytest.raises(subprocess.CalledProcessError) as failed:
        Empty(url).prepare()

    [sentence] = failed.value.stderr.splitlines()
    assert sentence.startswith("CommandError: DATABASE_URL leads into no database: ")
    # PostgreSQL's own reason: a pool that tried again and again would have said only that its time was over.
    assert 'password authentication failed for user "nobody"' in sentence


def test_a_key_that_is_given_works_and_is_not_printed(empty: Empty) -> None:
    by_environment = empty.prepare(MQBROKER_API_KEY=KEY)
    by_argument = empty.prepare("--api-key", KEY.upper())

    for key, (made, said) in ((KEY, by_environment), (KEY.upper(), by_argument)):
        assert made["api_key"] is None
        assert key not in said
    assert empty.lets_in(KEY.upper())
    # The one given last takes the place of the one before.
    assert not empty.lets_in(KEY)
