"""Who sets the slack K: one small controller per goal."""
