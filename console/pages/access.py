"""Pages of API keys, and of the users of the console."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from access import accounts, keys, roles
from access.models import ApiKey
from console.pages import frame

PAGE = 50


@require_GET
def all_keys(request: HttpRequest) -> HttpResponse:
    """API keys by name. The key itself is not stored, and its digest is not shown."""
    rows, shown = frame.by_name(request, keys.page, PAGE)
    with_limits = [(key, limits_of(key)) for key in rows]
    return frame.show(request, "console/api_keys.html", "API keys", keys=with_limits, **shown)


def limits_of(key: ApiKey) -> list[tuple[str, int]]:
    """The limits that are set, each with its label."""
    found = ((limit.label.lower(), getattr(key, limit.name)) for limit in keys.LIMITS)
    return [(label, limit) for label, limit in found if limit is not None]


def may_manage(request: HttpRequest) -> bool:
    """Whether the console user is an admin. Unfold calls this for the sidebar."""
    return roles.of(request.user) == roles.ADMIN


@require_GET
def all_users(request: HttpRequest) -> HttpResponse:
    """The users of the console by name, with their roles. Only admins see them, because a user can be made an admin."""
    if not may_manage(request):
        raise PermissionDenied
    users, shown = frame.by_name(request, accounts.page, PAGE, in_namespaces=False)
    return frame.show(request, "console/users.html", "Users", users=users, **shown)
