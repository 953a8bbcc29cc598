"""Reading the sources, and learning from what was read."""
