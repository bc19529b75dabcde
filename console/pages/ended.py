"""The page of the transactions that were ended: committed or rolled back."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import frame, halves
from store.reading import cursors, merging
from store.stats import now
from transactions.reads import listing
from transactions.reads.listing import Cursor

# The states, with their names in the address and in the API.
STATES = {"": None, "committed": "COMMITTED", "rolled_back": "ROLLED_BACK"}


@require_GET
def ended(request: HttpRequest) -> HttpResponse:
    """The committed and rolled back transactions, the latest end first."""
    asked = halves.asked_for(request)
    state = request.GET.get("state", "")
    wanted = asked.wanted(STATES.get(state))
    after = frame.after(request, Cursor) or merging.from_start(Cursor(stored_at=None))
    page = listing.page(wanted, after, halves.PAGE)
    return frame.show(
        request,
        "console/ended.html",
        "Ended transactions",
        now=now(),
        ends=page.rows,
        keys=listing.keys_of(page),
        state=state if state in STATES else "",
        after=cursors.encode_each(page.after) or "",
        **halves.form(request, asked),
    )
