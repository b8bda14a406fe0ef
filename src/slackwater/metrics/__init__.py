"""What a running query reports: one table of metrics, and its formats."""
