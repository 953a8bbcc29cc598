"""Wiring of ports, adapters and handlers."""
