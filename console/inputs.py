"""The inputs of the forms of actions: of a line, of several lines, of a secret, and of offered words."""

from collections.abc import Sequence
from typing import Any

from django import forms

from store.db import fields


class Wide(forms.TextInput):
    """An input that fills a line of its form."""

    is_wide = True


class Lines(forms.Textarea):
    """An input for a text of several lines."""

    is_wide = True


class Secret(forms.PasswordInput):
    """An input whose text is not shown, and is not sent back to the browser with an error of the form."""

    is_wide = True


class Offered(Wide):
    """A list of words: a checkbox for each offered word, and an input for other words, all with the same name."""

    template_name = "console/offered.html"

    def __init__(self, offered: Sequence[str]) -> None:
        super().__init__({"aria-label": "Others", "placeholder": "others"})
        self.offered = offered

    def use_required_attribute(self, initial: Any) -> bool:
        """False, because a ticked checkbox is enough without text in the input."""
        return False

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        words = str(value or "").replace(",", " ").split()
        rest = " ".join(word for word in words if word not in self.offered)
        context = super().get_context(name, rest, attrs)
        return {**context, "offers": [(word, word in words) for word in self.offered]}


def of_text(one: fields.Text) -> forms.Widget:
    """The input of a text."""
    if one.is_secret:
        return Secret({"autocomplete": "off"})
    if one.has_lines:
        return Lines({"rows": 5})
    return Wide() if one.is_long else forms.TextInput()
