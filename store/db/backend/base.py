"""The wrapper of a connection that Django makes for the engine `store.db.backend`."""

from typing import Any

from django.db.backends.postgresql import base
from psycopg_pool import PoolTimeout

from store.db import patience
from store.db.patience import Unanswered


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's wrapper. A request that has waited in vain for the database does not wait again for a new connection."""

    def get_new_connection(self, conn_params: Any) -> Any:
        """Opens a connection like Django's method; also raises Unanswered."""
        ours = patience.current()
        if ours.is_over:
            raise Unanswered(ours.limit_seconds)
        try:
            return super().get_new_connection(conn_params)
        except PoolTimeout:
            ours.unanswered(ours.limit_seconds)
            raise
