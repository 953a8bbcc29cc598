"""Knowledge sources: one module per kind of source."""
