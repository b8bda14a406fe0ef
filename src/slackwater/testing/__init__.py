"""Workloads and oracles that users may use for their own tests."""
