"""One module per system that the investigator may read. A tool takes a service and a time window, no query language."""
