"""An order service and a coupon service whose books agree, although commits get lost and processes are killed."""
