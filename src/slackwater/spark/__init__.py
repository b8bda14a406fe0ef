"""Slackwater on Spark: pack, exchange, operator, unpack. Decode, delegate, encode."""
