"""An order service and a coupon service whose records agree, although commits are lost and processes are killed."""
