"""An order service and a coupon service that agree, although commits get lost and processes die between two steps."""
