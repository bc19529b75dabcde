"""The provider, the console, and people who sign in at the one to see the other."""

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import urllib3

from mqbroker.embedded import commands
from tests.broker import forks
from tests.console.operators import Operator, Page
from tests.sign_on.provider.__main__ import PASSWORD

SUBJECTS = {"mia": "oidc:1", "noa": "oidc:2"}
FIELD = re.compile(r'name="(csrfmiddlewaretoken|next)" value="([^"]*)"')
# Makes each session due, as if its time had passed.
DUE = """
from importlib import import_module
from django.contrib.sessions.models import Session
store = import_module("django.contrib.sessions.backends.db").SessionStore
for row in Session.objects.all():
    session = store(row.session_key)
    if "oidc_id_token_expiration" in session:
        session["oidc_id_token_expiration"] = 1
        session.save()
"""
STATES = """
from django.contrib.sessions.models import Session
for row in Session.objects.all():
    print(*row.get_decoded().get("oidc_states", {}))
"""


@dataclass(frozen=True)
class Provider:
    """The identity provider, its folder, and what tests change there."""

    url: str
    folder: Path

    @property
    def issuer(self) -> str:
        return f"{self.url}/o"

    def gives_roles(self, name: str, *roles: str) -> None:
        """Gives a user these roles and no others, from the next ID token on."""
        self.posts(f"roles/{name}/", list(roles))

    def ends_sessions(self) -> None:
        """Signs everybody out at the provider."""
        self.posts("end-sessions/", None)

    def gives_wrong_tokens(self, **fault: Any) -> None:
        """Makes the next ID tokens wrong: see `tests.sign_on.provider.tokens`."""
        (self.folder / "fault.json").write_text(json.dumps(fault))

    @property
    def latest_token(self) -> str:
        """The ID token that it gave last."""
        return (self.folder / "latest.jwt").read_text()

    def posts(self, path: str, given: object) -> None:
        answer = urllib3.request("POST", f"{self.url}/{path}", body=json.dumps(given), timeout=30)
        assert answer.status == 200, answer.data


@dataclass(frozen=True)
class Console:
    """A console that signs on at the provider."""

    url: str
    database: str
    variables: dict[str, str]

    def makes_sessions_due(self) -> None:
        """Lets the time of each session's renewal come."""
        self.manage("shell", "--verbosity", "0", "--command", DUE)

    def states(self) -> list[str]:
        """The states of sign-ons that have been begun and not ended."""
        return self.manage("shell", "--verbosity", "0", "--command", STATES).split()

    def manage(self, *words: str) -> str:
        """What a management command with the console's settings prints."""
        done = forks.run(commands.manage(*words), self.variables)
        done.check_returncode()
        return done.stdout


@dataclass
class Person:
    """A user of the provider with a browser of their own."""

    name: str
    console: Console
    provider: Provider
    saw: list[str] = field(default_factory=list)

    @cached_property
    def operator(self) -> Operator:
        """The browser."""
        return Operator(self.console.url)

    @property
    def subject(self) -> str:
        """The name of the console's user for this person."""
        return SUBJECTS[self.name]

    def signs_on(self, path: str = "topics/", begin: str = "sign-on/") -> Page:
        """What is shown in the end to one who begins at the console and, where asked, signs in at the provider."""
        page = self.operator.sees(f"{begin}?next=/console/{path}")
        if not page.address.startswith(f"{self.provider.url}/admin/login/"):
            return page
        fields = {name: value.replace("&amp;", "&") for name, value in FIELD.findall(page.html)}
        return self.operator.asks(page.address, {**fields, "username": self.name, "password": PASSWORD})
