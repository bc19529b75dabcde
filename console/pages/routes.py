"""The addresses of the console's own pages, below `/console/`."""

from collections.abc import Callable

from django.http import HttpResponse

from console.pages import (
    access,
    acting,
    audit,
    charts,
    dead_letters,
    ended,
    find,
    groups,
    halves,
    messages,
    namespaces,
    subscriptions,
    system,
    topics,
    transactions,
)
from store.process import doors

# Names may hold any of `%|a-zA-Z0-9_-`, so `str` matches them all.
ROUTES: tuple[tuple[str, Callable[..., HttpResponse], str], ...] = (
    ("transactions/pending/", halves.pending, "pending"),
    ("transactions/discarded/", halves.discarded, "discarded"),
    ("transactions/ended/", ended.ended, "ended"),
    ("transactions/<uuid:transaction_id>/", transactions.one, "transaction"),
    ("messages/<uuid:message_id>/", messages.one, "message"),
    ("find/", find.find, "find"),
    ("find/suggestions/", find.suggest, "suggestions"),
    ("producer-groups/", groups.all_producers, "producer_groups"),
    ("producer-groups/<str:name>/", groups.one_producer, "producer_group"),
    ("topics/", topics.all_topics, "topics"),
    ("topics/<str:name>/", topics.one, "topic"),
    ("delays/", topics.delayed, "delays"),
    ("consumer-groups/", groups.all_consumers, "consumer_groups"),
    ("consumer-groups/<str:name>/", groups.one_consumer, "consumer_group"),
    ("cells/", system.cells, "cells"),
    ("system/", system.system, "system"),
    ("charts/", charts.charts, "charts"),
    ("dead-letters/", dead_letters.all_groups, "dead_letters"),
    ("dead-letters/<str:name>/", dead_letters.of_group, "dead_letters_of"),
    ("subscriptions/", subscriptions.all_subscriptions, "subscriptions"),
    ("subscriptions/<str:name>/", subscriptions.one, "subscription"),
    ("namespaces/", namespaces.all_namespaces, "namespaces"),
    ("api-keys/", access.all_keys, "api_keys"),
    ("users/", access.all_users, "users"),
    ("audit/", audit.entries, "audit"),
    ("actions/", acting.latest, "actions"),
    ("actions/new/", acting.new, "new_action"),
    ("actions/once/", acting.once, "once"),
    ("actions/<uuid:action_id>/", acting.one, "action"),
    ("actions/<uuid:action_id>/steer/", acting.steer, "steer_action"),
    *doors.added(doors.To.PAGES),
)
