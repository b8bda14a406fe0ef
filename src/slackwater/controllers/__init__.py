"""Controllers choose the slack K: one small controller per goal."""
