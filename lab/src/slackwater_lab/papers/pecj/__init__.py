"""The experiments of PECJ, over all windows there are."""
