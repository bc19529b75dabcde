"""The table of docs/access.md, and what the code serves: one row per method and path."""

import re
from dataclasses import dataclass

from mqbroker.api.control.documents import Docs
from mqbroker.api.router import PARAMETER
from mqbroker.api.routes import routes
from mqbroker.embedded.commands import ROOT
from mqbroker.urls import CONTROL_PLANE, resource

ROW = re.compile(
    r"^\| (GET|POST|PUT|DELETE) \| `([^`]+)` \| (.+) \| (nothing|no|`(?:viewer|operator|admin)`)[^|]* \|$", re.MULTILINE
)
ROLES = ("viewer", "operator", "admin")
SCOPE = re.compile(r"`(\w+):?`(?: of (the|each|some) (topic|group))?")


@dataclass(frozen=True)
class Row:
    """Who may call one method of a path, as the page says it."""

    method: str
    path: str
    needs: str
    console: str

    def allows_key(self, scopes: set[str], named: dict[str, str]) -> bool:
        """Whether a key with these scopes may call it about the topic and the group that are named."""
        if self.needs.startswith(("nothing", "any key")):
            return True
        return any(
            all(_scope(verb, which, kind, named) in scopes for verb, which, kind in SCOPE.findall(way))
            for way in re.split(r",? or ", self.needs.partition(";")[0])
        )

    def hides_from(self, scopes: set[str]) -> bool:
        """Whether a key that may not call it about these things may about others: it does not learn that they exist."""
        ways = [SCOPE.findall(way) for way in re.split(r",? or |;", self.needs)]
        return "else 404" in self.needs and any(
            way and all({verb, f"{verb}:"} & scopes for verb, _, _ in way) for way in ways
        )

    def allows_user(self, role: str) -> bool:
        """Whether a console user of a role may call it."""
        least = self.console.strip("`")
        return least == "nothing" or (least in ROLES and ROLES.index(role) >= ROLES.index(least))


def _scope(verb: str, which: str, kind: str, named: dict[str, str]) -> str:
    if which == "some":
        return f"{verb}:"
    return f"{verb}:{named[kind]}" if kind else verb


def rows() -> list[Row]:
    """The rows of the page, in its order."""
    return [Row(*found) for found in ROW.findall((ROOT / "docs" / "access.md").read_text())]


def served() -> set[tuple[str, str]]:
    """Each method and path that the code serves, but for the console's pages."""
    data_plane = {(method, "/" + PARAMETER.sub(r"{\2}", route.pattern)) for route in routes for method in route.views}
    control_plane = {
        (method.upper(), "/" + PARAMETER.sub(r"{\2}", str(pattern.pattern)))
        for pattern in [resource("docs", Docs), *CONTROL_PLANE]
        for method in ("get", "post", "put", "delete")
        if hasattr(pattern.callback.view_class, method)  # type: ignore[attr-defined]  # Django's as_view sets it
    }
    return data_plane | control_plane
