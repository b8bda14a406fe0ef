"""The figures of docs/concepts.md."""
