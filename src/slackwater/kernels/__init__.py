"""Numba functions on arrays: buckets, reordering, keys, windows, counting, walking."""
