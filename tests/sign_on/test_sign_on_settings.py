"""Settings of the sign-on that do not go together stop the start with a sentence."""

import os
import subprocess
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT, python
from tests.broker import forks
from tests.cli import test_extras

ISSUER = {"MQBROKER_SIGN_ON_ISSUER": "https://login.example.org"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (ISSUER, "MQBROKER_SIGN_ON_ISSUER is given without a client: give MQBROKER_SIGN_ON_CLIENT_ID and"),
        ({"MQBROKER_SIGN_ON_LOCAL_USERS": "false"}, "leaves no user who may sign in: give MQBROKER_SIGN_ON_ISSUER."),
        (
            {"MQBROKER_SIGN_ON_ISSUER": "http://login.example.org"},
            "cannot be used (not an https address): give an address",
        ),
        ({"MQBROKER_SIGN_ON_ISSUER": "login.example.org"}, "cannot be used (not an https address): give an address"),
    ],
)
def test_settings_that_do_not_go_together_stop_the_start(given: dict[str, str], said: str) -> None:
    done = forks.run(python("-m", "mqbroker.embedded.cli", "settings"), {**os.environ, **given})

    assert done.returncode != 0
    assert said in done.stderr


def test_without_the_extra_the_start_says_what_to_install() -> None:
    check = ("manage.py", "check", "--settings", "mqbroker.embedded.cli.without_database")

    done = test_extras.run(*check, **ISSUER)

    assert done.returncode != 0
    assert "The package mozilla_django_oidc is not installed: run pip install 'mqbroker[oidc]'." in done.stderr


def test_without_an_issuer_no_module_of_the_door_is_imported(tmp_path: Path) -> None:
    program = """
import sys, django
django.setup()
from mqbroker import urls
print([name for name in sys.modules if "oidc" in name or "sign_on" in name])
"""
    settings = {"DJANGO_SETTINGS_MODULE": "mqbroker.embedded.cli.without_database", "MQBROKER_SECRET_KEY": "x"}

    done = subprocess.run(
        python("-c", program), env={**os.environ, **settings}, cwd=ROOT, capture_output=True, text=True
    )

    assert done.stdout == "['mqbroker.environment.sign_on']\n", done.stderr
