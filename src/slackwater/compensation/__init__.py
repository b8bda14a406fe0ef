"""Early answers: what the aggregates of a window will be when all of it has arrived (PECJ)."""
