"""Where each of the console's own pages is, below `/console/`."""

from collections.abc import Callable

from django.http import HttpResponse

from console.pages import groups, halves, topics, transactions

# Names may hold any of `%|a-zA-Z0-9_-`, so `str` matches them all.
ROUTES: tuple[tuple[str, Callable[..., HttpResponse], str], ...] = (
    ("transactions/pending/", halves.pending, "pending"),
    ("transactions/discarded/", halves.discarded, "discarded"),
    ("transactions/find/", transactions.find, "find_transaction"),
    ("transactions/<uuid:transaction_id>/", transactions.one, "transaction"),
    ("producer-groups/", groups.all_producers, "producer_groups"),
    ("producer-groups/<str:name>/", groups.one_producer, "producer_group"),
    ("topics/", topics.all_topics, "topics"),
    ("topics/<str:name>/", topics.one, "topic"),
    ("delays/", topics.delayed, "delays"),
    ("consumer-groups/", groups.all_consumers, "consumer_groups"),
    ("consumer-groups/<str:name>/", groups.one_consumer, "consumer_group"),
)
