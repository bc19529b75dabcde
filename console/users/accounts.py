"""Users of the console: who may sign in, and the one role that each has."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanSwitchWidget

from access import audit, roles
from access.audit import Outcome
from console.tables import ConsoleAdmin, exact
from console.users.signing import signed

CHOICES = (
    (roles.VIEWER, "viewer: reads everything but message bodies"),
    (roles.OPERATOR, "operator: also decides, checks, redrives, resets, recalls, pauses and configures"),
    (roles.ADMIN, "admin: also has keys, secrets, users and deletes"),
)
ACCESS = ("Access", {"fields": ("is_active", "role", "bodies")})


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]  # the forms of users name their model themselves
    """The part of a user's form that sets the role; the admin saves it (`ConsoleUserAdmin.save_related`)."""

    role = forms.ChoiceField(choices=CHOICES, widget=UnfoldAdminSelectWidget)
    bodies = forms.BooleanField(
        label="Message bodies",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="A viewer may read them, too. Operators and admins always may.",
    )


class NewUserForm(RoleForm, UserCreationForm):  # type: ignore[misc]  # Unfold ships no types
    """Makes a user."""


class UserForm(RoleForm, UserChangeForm):  # type: ignore[misc]  # as above
    """The form that changes a user; it shows the user's present role."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].initial = roles.role_in(self.instance)
        self.fields["bodies"].initial = roles.BODIES in roles.groups_of(self.instance)


class ConsoleUserAdmin(UserAdmin, ConsoleAdmin):  # type: ignore[misc, type-arg]  # as above
    """The accounts that may sign in to the console.

    Only admins may see or change them, because an account can be made an admin.
    """

    form = UserForm
    add_form = NewUserForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "shown_role", exact("last_login", "Last login"))
    list_filter = ()
    # Without actions on many users, because Django would delete users without a transaction for the audit's entries.
    actions = None
    fieldsets: ClassVar[Any] = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ACCESS,
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets: Any = (
        (None, {"classes": ("wide",), "fields": ("username", "usable_password", "password1", "password2")}),
        ACCESS,
    )

    @admin.display(description="Role")
    def shown_role(self, user: User) -> str:
        return roles.role_in(user) or "none: may not sign in"

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """The name of an identity provider's user, which the form would refuse for its colon."""
        return ("username",) if obj and ":" in obj.username else ()

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Gives the role, and writes the audit entry, in the database transaction in which Django makes the change."""
        super().save_related(request, form, formsets, change)
        roles.assign(form.instance, form.cleaned_data["role"], bodies=form.cleaned_data["bodies"])
        changed = [name for name in form.changed_data if "password" not in name]
        before = {name: form.get_initial_for_field(form.fields[name], name) for name in changed} if change else None
        after = {name: form.cleaned_data[name] for name in changed}
        self.record(request, "user.change" if change else "user.make", form.instance, after, before)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        with audit.together():
            return super().user_change_password(request, id, form_url)

    def log_addition(self, request: HttpRequest, obj: User, message: Any) -> Any:
        """Writes nothing: `save_related` has written the audit entry."""

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> Any:
        """Writes the audit entry of a changed password; `save_related` has written other changes."""
        if request.resolver_match and request.resolver_match.url_name == "auth_user_password_change":
            self.record(request, "user.password", obj)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[User]) -> Any:
        for user in queryset:
            self.record(request, "user.delete", user, before={"role": roles.role_in(user)})

    def record(
        self, request: HttpRequest, action: str, user: User, after: object = None, before: object = None
    ) -> None:
        """Writes the audit's entry of a change of a user, in the transaction of the change."""
        audit.write(signed(request), action, Outcome(user.get_username(), after, before))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_manage(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may_manage(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_manage(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may_manage(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may_manage(request)


def may_manage(request: HttpRequest) -> bool:
    """Whether the console user is an admin. Unfold also calls this for the sidebar."""
    return roles.of(request.user) == roles.ADMIN
