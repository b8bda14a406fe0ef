"""Disorder within a stream (K-slack) and between streams (Synchronizer)."""
