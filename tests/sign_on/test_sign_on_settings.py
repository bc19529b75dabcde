"""A wrong setting of the sign-on stops the start with a sentence that names it."""

import os
import subprocess
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT, python
from tests.broker import forks
from tests.cli import test_extras

ISSUER = "https://login.example.org"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ISSUER": "http://login.example.org"}, "(not an https address): give an address such as https://"),
        ({"ISSUER": "login.example.org"}, "(not an https address): give an address"),
        ({"ISSUER": "https://login.example.org\n"}, "(a blank or line break): give an address"),
        ({"ISSUER": "https://login.example.org?realm=staff"}, "(an issuer has no user, query or fragment): give"),
        ({"ISSUER": "https://mia@login.example.org"}, "(an issuer has no user, query or fragment): give"),
        ({"ISSUER": "https://login.example.org:https"}, "MQBROKER_SIGN_ON_ISSUER='https://login.example.org:https'"),
        (
            {"ISSUER": "https://login.example.org/.well-known/openid-configuration"},
            "(the address of the discovery document: leave out /.well-known/openid-configuration)",
        ),
        ({"ISSUER": ISSUER}, "is given without a client: give MQBROKER_SIGN_ON_CLIENT_ID and"),
        ({"ISSUER": ISSUER, "CLIENT_ID": "console"}, "is given without a client: give MQBROKER_SIGN_ON_CLIENT_ID"),
        ({"CLIENT_ID": "console"}, "without an identity provider: give MQBROKER_SIGN_ON_ISSUER, or leave out both"),
        (
            {"CLIENT_SECRET": "hidden\n"},
            "MQBROKER_SIGN_ON_CLIENT_SECRET begins or ends with a blank or line break: give",
        ),
        ({"SCOPES": "email"}, "(without openid, the provider issues no ID token): give scopes between blanks"),
        ({"ROLE_CLAIM": ""}, "(empty, or with blanks around it): give the name of a claim"),
        (
            {"RENEW_SECONDS": "0"},
            "MQBROKER_SIGN_ON_RENEW_SECONDS='0' cannot be used (out of range): give a whole number",
        ),
        ({"RENEW_SECONDS": "soon"}, "MQBROKER_SIGN_ON_RENEW_SECONDS='soon' cannot be used"),
        ({"LOCAL_USERS": "no"}, "MQBROKER_SIGN_ON_LOCAL_USERS='no' cannot be used (neither true nor false): give true"),
        ({"LOCAL_USERS": "false"}, "leaves no user who may sign in: give MQBROKER_SIGN_ON_ISSUER."),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named_with_the_way_out(given: dict[str, str], said: str) -> None:
    own = {f"MQBROKER_SIGN_ON_{name}": value for name, value in given.items()}

    done = forks.run(python("-m", "mqbroker.embedded.cli", "settings"), {**os.environ, **own})

    assert done.returncode != 0
    assert said in done.stderr
    assert "hidden" not in done.stderr


def test_without_the_extra_the_start_says_what_to_install() -> None:
    check = ("manage.py", "check", "--settings", "mqbroker.embedded.cli.without_database")

    done = test_extras.run(*check, MQBROKER_SIGN_ON_ISSUER=ISSUER)

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
