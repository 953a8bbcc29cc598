"""HTTP routes, their OpenAPI description, and the limits of inbound requests."""
