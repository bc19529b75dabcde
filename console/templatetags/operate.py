"""Links and buttons that lead to actions, for those who may do them."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from access import roles
from actions import configuration, kinds, shown_once
from console import asking
from transactions.models import Endpoint

register = template.Library()


@register.simple_tag(takes_context=True)
def action_link(context: Context, kind: str, target: object, **more: object) -> SafeString | str:
    """The link to an action on one target; nothing for a user who may not do it."""
    return link(kind, target, **more) if roles.may(context["request"].user, kinds.find(kind).action) else ""


def link(kind: str, target: object, **more: object) -> SafeString:
    """The link to an action on one target."""
    address = f"{reverse('admin:new_action')}?{urlencode({'action': kind, 'target': str(target), **more})}"
    return _link(kind, address, asking.words(kind).button)


def links(kinds_of_actions: Iterable[str], target: object) -> SafeString:
    """Links to several actions on one target."""
    return format_html_join(" ", "{}", ((link(kind, target),) for kind in kinds_of_actions))


@register.simple_tag(takes_context=True)
def action_making(context: Context, kind: str) -> SafeString | str:
    """The link to the form that makes something new; nothing for a user who may not do it."""
    if not roles.may(context["request"].user, kinds.find(kind).action):
        return ""
    return _link(kind, f"{reverse('admin:new_action')}?{urlencode({'action': kind})}", asking.words(kind).button)


@register.simple_tag(takes_context=True)
def action_once(context: Context, kind: str, target: object = "") -> SafeString | str:
    """The link to an action whose outcome is shown once; nothing for a user who may not do it."""
    if not roles.may(context["request"].user, shown_once.find(kind).action):
        return ""
    address = f"{reverse('admin:once')}?{urlencode({'action': kind, 'target': str(target)})}"
    return _link(kind, address, asking.words(kind).button)


@register.simple_tag(takes_context=True)
def action_on_all(context: Context, kind: str, text: str, **wanted: object) -> SafeString | str:
    """The link to an action on all that match; nothing for a user who may not do it."""
    if not roles.may(context["request"].user, kinds.find(kind).action):
        return ""
    given = {name: value for name, value in wanted.items() if value not in (None, 0, "")}
    return _link(kind, f"{reverse('admin:new_action')}?{urlencode({'action': kind, 'all': '1', **given})}", text)


@register.simple_tag(takes_context=True)
def action_on_letters(context: Context, text: str, group: str, narrowed: Mapping[str, str], **more: object) -> str:
    """The link to a redrive of all dead letters of a group, or of those that match; nothing for who may not do it."""
    kind = "dead_letter.redrive"
    if not roles.may(context["request"].user, kinds.find(kind).action):
        return ""
    given = {asking.LETTER_FIELDS[name]: value for name, value in narrowed.items()}
    address = urlencode({"action": kind, "all": "1", "group": group, **given, **more})
    return _link(kind, f"{reverse('admin:new_action')}?{address}", text)


@register.simple_tag(takes_context=True)
def action_on_selected(context: Context, kind: str, form: str) -> SafeString | str:
    """The button to an action on what is selected in a form; nothing for a user who may not do it."""
    if not roles.may(context["request"].user, kinds.find(kind).action):
        return ""
    words = asking.words(kind)
    button = (
        '<button type="submit" form="{}" name="action" value="{}" class="mq-button mq-quiet{}">{} selected</button>'
    )
    return format_html(button, form, kind, " mq-grave" if words.grave else "", words.button.removesuffix(" now"))


@register.simple_tag(takes_context=True)
def operates(context: Context) -> bool:
    """Whether the user may do anything to what is listed."""
    return roles.of(context["request"].user) in (roles.OPERATOR, roles.ADMIN)


@register.filter
def action_words(kind: str) -> asking.Words:
    """How a kind of action is called."""
    return asking.words(kind)


@register.filter
def endpoint_target(endpoint: Endpoint) -> str:
    """What an action calls an endpoint."""
    return configuration.target_of(endpoint)


def _link(kind: str, address: str, text: str) -> SafeString:
    grave = " mq-grave" if asking.words(kind).grave else ""
    return format_html('<a class="mq-button mq-quiet{}" href="{}">{}</a>', grave, address, text)
