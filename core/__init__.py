"""Domain decisions as pure functions of plain data. No SDK, no sockets; the time comes through a port."""

VERSION = "0.2.0"  # of all packages; pyproject.toml reads it here
