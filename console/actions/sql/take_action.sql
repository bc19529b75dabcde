-- Lock an action until the end of this transaction, unless another session has locked it. An advisory lock ends with
-- its session, so a killed worker leaves no lock behind; and the row is not locked, so an operator may pause or cancel
-- the action.
SELECT pg_try_advisory_xact_lock(hashtextextended(%(action_id)s::text, 0)) AS taken
