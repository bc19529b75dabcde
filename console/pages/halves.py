"""Pages of half messages: the pending, the discarded, and one transaction with its history."""

from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from console.pages import frame
from console.reads import clock, halves, names, transactions

AGES = ((60, "1 minute"), (600, "10 minutes"), (3600, "1 hour"), (6 * 3600, "6 hours"), (86400, "1 day"))

# Ten years: an age beyond the year 1 is no time any more.
MAX_AGE_SECONDS = 10 * 366 * 86400


@require_GET
def pending(request: HttpRequest) -> HttpResponse:
    """Half messages that wait for their decision."""
    now, wanted = clock.now(), wanted_halves(request)
    found = halves.pending(wanted, now)
    return frame.show(
        request, "console/pending.html", "Pending half messages", now=now, page=found, **filter_form(request, wanted)
    )


@require_GET
def discarded(request: HttpRequest) -> HttpResponse:
    """Half messages that the checks gave up."""
    now, wanted = clock.now(), wanted_halves(request)
    found = halves.discarded(wanted, now)
    return frame.show(
        request,
        "console/discarded.html",
        "Discarded half messages",
        now=now,
        page=found,
        **filter_form(request, wanted),
    )


@require_GET
def find(request: HttpRequest) -> HttpResponse:
    """The page of the transaction whose id was typed."""
    typed = request.GET.get("transaction_id", "").strip()
    try:
        transaction_id = UUID(typed)
    except ValueError:
        return frame.not_there(request, f"“{typed}” is no transaction id: give a UUID.", "pending")
    return HttpResponseRedirect(reverse("admin:transaction", args=(transaction_id,)))


@require_GET
def one(request: HttpRequest, transaction_id: UUID) -> HttpResponse:
    """One transaction: its state, its messages and its history."""
    found = transactions.find(transaction_id)
    if found is None:
        kept = f"ended transactions are kept for {settings.RESERVED_HOURS} hours"
        return frame.not_there(request, f"Transaction {transaction_id} does not exist: {kept}.", "pending")
    return frame.show(request, "console/transaction.html", "Transaction", now=clock.now(), transaction=found)


def wanted_halves(request: HttpRequest) -> halves.Wanted:
    """Which half messages the address asks for."""
    asked = request.GET
    return halves.Wanted(
        producer_group=asked.get("producer_group", "").strip(),
        topic=asked.get("topic", "").strip(),
        older_than_seconds=min(frame.whole_number(request, "older_than_seconds"), MAX_AGE_SECONDS),
        after=asked.get("after", ""),
    )


def filter_form(request: HttpRequest, wanted: halves.Wanted) -> dict[str, object]:
    """What the form above a list needs, and the address of its next page but for the cursor."""
    kept = request.GET.copy()
    kept.pop("after", None)
    return {
        "wanted": wanted,
        "ages": AGES,
        "offered_topics": names.offered_topics(),
        "offered_groups": names.offered_producer_groups(),
        "query": kept.urlencode(),
        "check_max": settings.TRANSACTION_CHECK_MAX,
        "auto_create": settings.AUTO_CREATE_TOPICS,
    }
