"""The order in which an event of each stream searches the other streams."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.kernels.records import F64, Shed
from slackwater.shedding.kernel_state import AccessPaths
from slackwater.shedding.learning import Learning


class JoinOrders:
    """The present join orders, one per starting stream; `shed` has the lookup costs of them.

    Parameters
    ----------
    shed
        State shared with the join kernel.
    paths
        How the join finds partners.
    """

    def __init__(self, shed: Shed, paths: AccessPaths) -> None:
        self._shed = shed
        self._paths = paths
        self.current = paths.orders

    def adapt(self, learning: Learning, window: F64) -> bool:
        """Search streams with few partners first; return whether an order has changed."""
        if not self._paths.any_order:
            return False
        orders = learning.orders(self.current, self._paths.tied, window)
        if orders == self.current:
            return False
        self.set(orders)
        return True

    def set(self, orders: Sequence[Sequence[int]]) -> None:
        """Use these orders."""
        self.current = [list(order) for order in orders]
        for i, order in enumerate(self.current):
            self._shed.lookup[i] = self._paths.lookup[i, order]
