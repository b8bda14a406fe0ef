"""How long tests wait for others: a busy machine fails no test, only what hangs is ended."""

PATIENCE_S = 120.0  # for an answer, a page, a report
PROGRAM_S = 1_200.0  # for a program that starts Spark
