"""The papers' own experiments."""
