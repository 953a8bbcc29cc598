"""Documents → passages → ranked evidence."""
