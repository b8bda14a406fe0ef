"""Load shedding: the least profitable work of a join is left out when the CPU is short."""
