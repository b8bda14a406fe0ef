"""Columnar events: the only data shape inside."""
