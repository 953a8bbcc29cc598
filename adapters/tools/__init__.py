"""Tools of investigations, one module per system. A tool takes a service and a time window, and no query language."""
