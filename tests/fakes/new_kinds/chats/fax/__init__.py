"""A chat that somebody adds: a fax machine."""
