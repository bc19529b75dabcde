"""Outgoing HTTP calls: to producers' endpoints for checks, and to subscriptions' servers for pushes."""
