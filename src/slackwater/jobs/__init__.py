"""Job files (TOML, SQL) as a library: read, plan, explain, verify, advise."""
