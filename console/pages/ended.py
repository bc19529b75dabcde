"""The page of the transactions that were ended: committed or rolled back."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import frame, halves
from store.reading import previews
from store.stats import now
from transactions.reads import listing
from transactions.reads.listing import Place

# As the address has them, and as the API.
STATES = {"": None, "committed": "COMMITTED", "rolled_back": "ROLLED_BACK"}
BEYOND = Place().below_operation


@require_GET
def ended(request: HttpRequest) -> HttpResponse:
    """Committed and rolled back transactions, the latest end first."""
    asked = halves.asked_for(request)
    state = request.GET.get("state", "")
    wanted = asked.wanted(STATES.get(state))
    below = frame.whole_number(request, "after") or BEYOND
    page = listing.page(wanted, Place(stored_at=None, below_operation=below), halves.PAGE)
    return frame.show(
        request,
        "console/ended.html",
        "Ended transactions",
        now=now(),
        ends=page.transactions,
        keys=previews.keys([end.commit_log_offset for end in page.transactions]),
        state=state if state in STATES else "",
        after=str(page.after.below_operation) if page.after else "",
        **halves.form(request, asked),
    )
