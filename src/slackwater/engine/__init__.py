"""One shard wired together: reordering, join, goal; snapshots, metrics, replay and report."""
