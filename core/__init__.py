"""Decisions: plain data in, plain data out. No SDK, no socket, and no clock but through a port."""
