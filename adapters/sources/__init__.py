"""Knowledge sources: one module for each kind of place that documents come from."""
