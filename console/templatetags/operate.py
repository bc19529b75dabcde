"""Links and buttons that lead to actions; a user who may not do an action does not see its link."""

from collections.abc import Mapping
from urllib.parse import urlencode

from django import template
from django.template import Context
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from access import roles
from console.actions import configuration, kinds
from console.actions.messages import NARROWING
from console.actions.shapes import Kind
from transactions.models import Endpoint

register = template.Library()

# The page of a target, by the first part of the action's name.
PAGES_OF_TARGETS = {
    "action": "action",
    "consumer_group": "consumer_group",
    "dead_letter": "message",
    "discarded": "transaction",
    "message": "message",
    "producer_group": "producer_group",
    "subscription": "subscription",
    "topic": "topic",
    "transaction": "transaction",
}


@register.simple_tag(takes_context=True)
def action_link(context: Context, name: str, target: object = "") -> SafeString | str:
    """The link to an action on one target, or to the form that asks for a name; empty if the user may not do it."""
    kind = permitted(context, name)
    return _link(kind, kind.button, **({"target": target} if target else {})) if kind else ""


@register.simple_tag(takes_context=True)
def action_on_all(context: Context, name: str, text: str, **wanted: object) -> SafeString | str:
    """The link to an action on all matching targets; empty if the user may not do the action."""
    kind = permitted(context, name)
    given = {field: value for field, value in wanted.items() if value not in (None, 0, "")}
    return _link(kind, text, all=1, **given) if kind else ""


@register.simple_tag(takes_context=True)
def action_on_letters(context: Context, text: str, group: str, narrowed: Mapping[str, str], **more: object) -> str:
    """The link to a redrive of all or matching dead letters of a group; empty if the user may not redrive."""
    kind = permitted(context, "dead_letter.redrive")
    given = {field: narrowed[name] for field, name in NARROWING.items() if name in narrowed}
    return _link(kind, text, all=1, group=group, **given, **more) if kind else ""


@register.simple_tag(takes_context=True)
def action_on_selected(context: Context, name: str, form: str) -> SafeString | str:
    """The button for an action on the selected rows of a form; empty if the user may not do the action."""
    kind = permitted(context, name)
    button = (
        '<button type="submit" form="{}" name="action" value="{}" class="mq-button mq-quiet{}">{} selected</button>'
    )
    return format_html(button, form, name, _grave(kind), kind.button.removesuffix(" now")) if kind else ""


@register.simple_tag
def target_link(action: str, target: str) -> SafeString | str:
    """The target of an action, as a link if the target has a page."""
    route = PAGES_OF_TARGETS.get(action.partition(".")[0])
    try:
        page = reverse(f"admin:{route}", args=(target,))
    except NoReverseMatch:  # the target is not an id, or not a name that a topic or group can have
        return target
    return format_html('<a href="{}">{}</a>', page, target)


@register.simple_tag(takes_context=True)
def operates(context: Context) -> bool:
    """Whether the user may do any action on listed rows."""
    return roles.of(context["request"].user) in (roles.OPERATOR, roles.ADMIN)


register.filter("action_title", kinds.title)
register.filter("noun", kinds.counted)


@register.filter
def endpoint_target(endpoint: Endpoint) -> str:
    """The name by which an action's target names an endpoint."""
    return configuration.target_of(endpoint)


def permitted(context: Context, name: str) -> Kind | None:
    """The kind of this name, if the user may do it."""
    kind = kinds.of_any_page(name)
    return kind if roles.may(context["request"].user, kind.action) else None


def _link(kind: Kind, text: str, **given: object) -> SafeString:
    address = f"{reverse(f'admin:{kind.page}')}?{urlencode({'action': kind.name, **given})}"
    return format_html('<a class="mq-button mq-quiet{}" href="{}">{}</a>', _grave(kind), address, text)


def _grave(kind: Kind) -> str:
    return " mq-grave" if kind.grave else ""
