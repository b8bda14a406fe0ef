"""Windows over one stream, and aggregates of their events."""
