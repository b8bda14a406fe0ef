"""What the user requests: frozen, validated, serialisable descriptions; no numpy."""
