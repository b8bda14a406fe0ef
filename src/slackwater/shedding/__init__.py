"""Load shedding: leaves out the least profitable work of a join when the CPU is short."""
