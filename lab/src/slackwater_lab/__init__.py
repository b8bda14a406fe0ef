"""Experiments: seeded workloads, and figures measured on them."""
