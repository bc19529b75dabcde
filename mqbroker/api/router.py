"""The router of the data plane: finds the route of a path in two dictionaries, while Django's resolver tries all
patterns.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from mqbroker.api.answers import Answer

# A view's function, called with the request and the path's parameters.
View = Callable[..., Awaitable[Answer]]
Limit = Callable[[], int]
# The values of a path's parameters by name.
Named = dict[str, str | int]


# Parameters in Django's syntax, because the control plane has the same paths: <str:group> stands for any part of a path
# that is not empty, <int:queue_id> for digits.
PARAMETER = re.compile(r"<(str|int):(\w+)>")
# The most digits of a number; Python's int() refuses very long ones.
MAX_DIGITS = 4300


@dataclass(frozen=True)
class Route:
    """A path: its pattern without the first slash, the view of each method, and the maximum bytes of a body.

    `begins`: the POST is new work, which waits or is refused if too much is waiting. The path then has no parameters.
    """

    pattern: str
    views: Mapping[str, View]
    limit: Limit
    begins: bool = False
    # The verbs of scopes: a key must have a scope with one of them before its long body is read. The view checks the
    # whole scope.
    verbs: tuple[str, ...] = ()

    @cached_property
    def most_bytes(self) -> int:
        """The maximum bytes of a body, by the settings of this process."""
        return self.limit()

    @property
    def methods(self) -> list[str]:
        """The methods that a caller may use. With GET there is also HEAD."""
        return sorted({*self.views, *(["HEAD"] if "GET" in self.views else [])})

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The type and name of each parameter, in the order of the path."""
        return PARAMETER.findall(self.pattern)


@dataclass(frozen=True, slots=True)
class Template:
    """A route with parameters, by the positions of the parameters in the path."""

    route: Route
    parameters: tuple[tuple[int, str, str], ...]

    def named(self, parts: list[str]) -> Named | None:
        """The values of the parameters; None if a part of the path does not have its parameter's type."""
        values: Named = {}
        for number, kind, name in self.parameters:
            part = parts[number]
            if kind == "str" and part:
                values[name] = part
            elif kind == "int" and part.isascii() and part.isdigit() and len(part) <= MAX_DIGITS:
                values[name] = int(part)
            else:
                return None
        return values


class Router:
    """The routes by path: paths without parameters in one dictionary, others by their constant parts in another."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, Route] = {}
        # The routes with parameters, by the number of parts of their path: functions that pick the constant parts, and
        # the templates by these parts.
        self._templates: dict[int, tuple[Callable[[list[str]], object], dict[object, Template]]] = {}
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        path = "/" + route.pattern
        if not route.parameters:
            self._fixed[path] = route
            return
        parts = path.split("/")
        found = [(number, PARAMETER.fullmatch(part)) for number, part in enumerate(parts)]
        constant = itemgetter(*(number for number, parameter in found if parameter is None))
        parameters = tuple((number, parameter[1], parameter[2]) for number, parameter in found if parameter is not None)
        known, templates = self._templates.setdefault(len(parts), (constant, {}))
        if known(parts) != constant(parts):
            raise ValueError(f"{route.pattern}: another route of {len(parts)} parts has its parameters elsewhere")
        templates[constant(parts)] = Template(route, parameters)

    def find(self, path: str) -> tuple[Route, Named] | None:
        """The route of a path whose escapes are decoded, with the values of its parameters."""
        route = self._fixed.get(path)
        if route is not None:
            return route, {}
        parts = path.split("/")
        found = self._templates.get(len(parts))
        if found is None:
            return None
        constant, templates = found
        template = templates.get(constant(parts))
        named = None if template is None else template.named(parts)
        return None if template is None or named is None else (template.route, named)
