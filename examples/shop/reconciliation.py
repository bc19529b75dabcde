"""The shop's books side by side: did every paid order, and nothing else, get its coupon, from one delivery?"""

from collections.abc import Mapping, Set
from dataclasses import dataclass


@dataclass(frozen=True)
class Reconciliation:
    orders_paid: int
    coupons_issued: int
    lost: int
    phantom: int
    twice: int
    decided_by_check_back: int

    @property
    def holds(self) -> bool:
        """Nothing lost, nothing invented, nothing twice; a day without a paid order proves none of it."""
        return self.lost == self.phantom == self.twice == 0 and self.orders_paid > 0

    def __str__(self) -> str:
        figures = {
            "orders paid": self.orders_paid,
            "coupons issued": self.coupons_issued,
            "lost": self.lost,
            "phantom": self.phantom,
            "twice": self.twice,
            "decided by check-back": self.decided_by_check_back,
        }
        return "\n".join(f"{name:<22}{figure:>7}" for name, figure in figures.items())


def reconcile(paid: Set[str], deliveries: Mapping[str, int], decided_by_check_back: int) -> Reconciliation:
    """`deliveries`: for each order that got its coupon, how often its message came."""
    return Reconciliation(
        orders_paid=len(paid),
        coupons_issued=len(deliveries),
        lost=len(paid - deliveries.keys()),
        phantom=len(deliveries.keys() - paid),
        twice=sum(1 for times in deliveries.values() if times > 1),
        decided_by_check_back=decided_by_check_back,
    )
