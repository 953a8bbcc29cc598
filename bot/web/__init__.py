"""HTTP routes, their description, and the limits of inbound requests."""
