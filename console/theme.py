"""The look of Unfold's frame, and the links of its sidebar.

The settings import this module, and beat reads the settings. So this module does not import Django's HTTP, forms and
models, which would take a fifth of beat's start: the first page imports them.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from django.utils.functional import lazy

from store.process import doors

if TYPE_CHECKING:
    from django.http import HttpRequest


def served(path: str) -> "Callable[[HttpRequest], str]":
    """A function that returns the address of a static file, which is not known yet when the settings are read."""

    def address(request: "HttpRequest") -> str:
        from django.templatetags.static import static

        return static(path)

    return address


def item(title: str, icon: str, page: str) -> dict[str, Any]:
    """A line of the sidebar that leads to the page of this name."""
    return {"title": title, "icon": icon, "page": page, "link": lazy(address_of, str)(page)}


def address_of(page: str) -> str:
    """The address of a page of the console."""
    from django.urls import reverse

    return reverse(f"admin:{page}")


# The sidebar's sections without the pages of doors.
SECTIONS: tuple[dict[str, Any], ...] = (
    {"items": [item("Overview", "space_dashboard", "index"), item("Charts", "monitoring", "charts")]},
    {
        "title": "Transactions",
        "separator": True,
        "items": [
            item("Pending half messages", "contrast", "pending"),
            item("Discarded half messages", "delete_history", "discarded"),
            item("Ended transactions", "task_alt", "ended"),
            item("Producer groups", "upload", "producer_groups"),
        ],
    },
    {
        "title": "Messages",
        "separator": True,
        "items": [
            item("Topics", "view_stream", "topics"),
            item("Delays", "hourglass_top", "delays"),
            item("Consumer groups", "download", "consumer_groups"),
            item("Dead letters", "mail_off", "dead_letters"),
            item("Subscriptions", "webhook", "subscriptions"),
        ],
    },
    {
        "title": "Broker",
        "separator": True,
        "items": [
            item("System", "monitor_heart", "system"),
            item("Cells", "hub", "cells"),
            item("Segments", "view_timeline", "store_segment_changelist"),
            item("Actions", "build", "actions"),
            item("Audit", "history_edu", "audit"),
            item("Namespaces", "workspaces", "namespaces"),
            item("API keys", "key", "api_keys"),
            {"title": "API reference", "icon": "api", "link": "/docs"},
            {
                **item("Users", "group", "users"),
                "permission": "console.pages.access.may_manage",
            },
        ],
    },
)


def navigation(_: "HttpRequest") -> list[dict[str, Any]]:
    """The sidebar's sections, with the pages of the installed doors."""
    return [{**section, "items": [*_with_doors(section["items"])]} for section in SECTIONS]


def _with_doors(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for line in items:
        yield line
        yield from (item(*link) for after, *link in doors.added(doors.To.SIDEBAR) if after == line.get("page"))


UNFOLD: dict[str, object] = {
    "SITE_TITLE": "mqbroker console",
    "SITE_HEADER": "mqbroker",
    "SITE_SUBHEADER": "Transactional messages",
    "SITE_SYMBOL": "contrast",
    # Unfold shows a link back to a public site; the broker has no such site.
    "SITE_URL": None,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": served("console/mark.svg")}],
    "SHOW_HISTORY": False,
    "STYLES": [served("console/console.css")],
    "SCRIPTS": [served("console/console.js")],
    "LOGIN": {"image": served("console/lanes.svg")},
    "BORDER_RADIUS": "6px",
    "COLORS": {
        "primary": {
            "50": "oklch(97.2% .013 262)",
            "100": "oklch(94.1% .029 262)",
            "200": "oklch(89% .057 262)",
            "300": "oklch(81.2% .099 262)",
            "400": "oklch(71.4% .144 262)",
            "500": "oklch(62.9% .181 262)",
            "600": "oklch(54.8% .201 262)",
            "700": "oklch(47.6% .185 262)",
            "800": "oklch(41.5% .154 262)",
            "900": "oklch(36.4% .117 262)",
            "950": "oklch(26.9% .084 262)",
        },
    },
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": navigation,
    },
}
