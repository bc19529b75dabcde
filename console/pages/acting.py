"""Pages of actions: the form with preview and reason, and the result of each target."""

import uuid
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access import audit, roles
from access.audit import Wanted
from console import asking
from console.actions import jobs, kinds
from console.actions.models import Action
from console.actions.shapes import Counted
from console.asking import Asked
from console.forms import Parameters
from console.pages import frame
from console.users.signing import signed
from store.db import sync
from store.db.fields import MAX_TEXT
from store.errors import NoPermission, OutcomeUnknown, Refusal, SystemBusy
from store.stats import now

PREVIEW = 10
LISTED = 50
RESULTS = 100
View = Callable[..., HttpResponse]
Result = TypeVar("Result")


def refusing(view: View) -> View:
    """A view that shows a refusal as a page of the console, with the sentence and a link back."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **named: Any) -> HttpResponse:
        try:
            return view(request, *args, **named)
        except (SystemBusy, OutcomeUnknown):
            raise
        except Refusal as refusal:
            page = frame.show(request, "console/action_refused.html", "Not done", refusal=refusal)
            page.status_code = 403 if isinstance(refusal, NoPermission) else 422
            return page

    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@refusing
def new(request: HttpRequest) -> HttpResponse:
    """The form of an action, with its preview; a posted form with a reason creates the action."""
    given, posted = asking.given_by(request), request.method == "POST"
    kind = kinds.find(given.get("action", ""))
    roles.require(request.user, kind.action)
    asked = asking.read(kind, given, posted=posted)
    if not posted or not asked.is_complete:
        page = frame.show(request, "console/new_action.html", kind.title, asked=asked, **preview(asked))
        page.status_code = 422 if posted or asked.form.errors else 200
        return page
    action = made(request, asked)
    if action.targets is not None:
        # The first steps run here, so that the operator sees results at once; later ticks do the rest.
        try:
            jobs.step(action.id, call)
        except Refusal as refusal:
            if not refusal.is_for_now:
                raise
    return HttpResponseRedirect(reverse("admin:action", args=(action.id,)))


def made(request: HttpRequest, asked: Asked) -> Action:
    """Creates the action of a complete form."""
    signature = signed(request, asked.reason)
    if not asked.all:
        return jobs.of_targets(asked.kind.name, asked.targets, asked.form.values, signature)
    if asked.most is None:
        return jobs.of_matching(asked.kind.name, asked.wanted, asked.form.values, signature)
    matching = kinds.matching(asked.kind.name)
    first, _ = matching.next(matching.bounded(asked.wanted), None, asked.most)
    return jobs.of_targets(asked.kind.name, first, asked.form.values, signature)


def preview(asked: Asked) -> dict[str, object]:
    """The preview of an action: a text about each target; or the number of matching targets, and some of them."""
    kind, parameters = asked.kind, asked.form.values
    if not asked.all:
        words = kind.describe(asked.targets, parameters)
        lines = [(target, words.get(target)) for target in asked.targets]
        dry_run = kind.dry_run(asked.targets[0], parameters) if kind.dry_run and asked.has_parameters else None
        return {"lines": lines, "count": Counted(len(lines)), "dry_run": dry_run}
    matching = kinds.matching(kind.name)
    bounded = matching.bounded(asked.wanted)
    first, _ = matching.next(bounded, None, PREVIEW)
    words = kind.describe(first, parameters)
    count = matching.count(bounded)
    lines = [(target, words.get(target)) for target in first]
    return {"lines": lines, "count": count, "others": max(0, count.rows - len(first))}


def call(work: Coroutine[Any, Any, Result], /) -> Result:
    """Runs a coroutine in the web process's event loop, and returns its result."""

    async def wait() -> Result:
        return await work

    return sync.call(wait)


@require_http_methods(["GET", "HEAD", "POST"])
@refusing
def once(request: HttpRequest) -> HttpResponse:
    """Shows the form of an action whose outcome is shown once; after the form is posted, shows the outcome.

    No cache keeps the answer.
    """
    given = asking.given_by(request)
    kind, target = kinds.find_once(given.get("action", "")), given.get("target", "").strip()[:MAX_TEXT]
    roles.require(request.user, kind.action)
    posted, reason = request.method == "POST", given.get("reason", "").strip()
    standing = kind.standing(target) if kind.standing and target else None
    form = Parameters(kind.fields, asking.texts_of(given), standing, posted=posted)
    shown = None
    if posted and standing and form.is_valid() and not form.values:
        form.add_error(None, "Nothing would change.")
    if posted and target and reason and form.is_valid():
        try:
            shown = kind.run(target, form.values, signed(request, reason))
        except (SystemBusy, OutcomeUnknown, NoPermission):
            raise
        except Refusal as refusal:
            form.add_error(None, refusal.detail)
    asked = {"kind": kind, "target": target, "form": form, "shown": shown, "reason": reason}
    page = frame.show(request, "console/shown_once.html", kind.title, **asked)
    page.headers["Cache-Control"] = "no-store"
    page.status_code = 422 if posted and shown is None else 200
    return page


@require_GET
def latest(request: HttpRequest) -> HttpResponse:
    """The latest actions."""
    return frame.show(request, "console/actions.html", "Actions", now=now(), actions=jobs.page(LISTED))


@require_GET
@refusing
def one(request: HttpRequest, action_id: uuid.UUID) -> HttpResponse:
    """The page of one action: its progress, and the results of its targets."""
    action = jobs.find(action_id)
    results = jobs.results(action)
    entries = audit.page(Wanted(action_id=action.id), None, RESULTS)
    described = kinds.described(action.kind, [entry.target for entry in entries], action.parameters)
    ways = jobs.STEERED.get(action.state, ())
    steered = [way for way in ways if roles.may(request.user, jobs.right_to(action, way))]
    return frame.show(
        request,
        "console/action.html",
        kinds.title(action.kind),
        now=now(),
        action=action,
        results=sorted(results.items()),
        handled=sum(results.values()),
        entries=[(entry, described.get(entry.target)) for entry in entries],
        described=described,
        steered=steered,
    )


@require_POST
@refusing
def steer(request: HttpRequest, action_id: uuid.UUID) -> HttpResponse:
    """Pauses, continues or cancels an action."""
    way = request.POST.get("to", "")
    roles.require(request.user, jobs.right_to(jobs.find(action_id), way))
    jobs.steer(action_id, way, signed(request))
    return HttpResponseRedirect(reverse("admin:action", args=(action_id,)))
