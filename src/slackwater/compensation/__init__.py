"""Early answers: estimates of the aggregates of a window before all of it has arrived (PECJ)."""
