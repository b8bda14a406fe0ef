"""The m-way window join: keys, conditions, window store, walking and counting."""
