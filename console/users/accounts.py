"""Who may see the page of the console's users."""

from django.http import HttpRequest

from access import roles


def may_manage(request: HttpRequest) -> bool:
    """Whether the console user is an admin. Unfold calls this for the sidebar."""
    return roles.of(request.user) == roles.ADMIN
