"""Domain decisions as pure functions of plain data. No SDK, no sockets; the time comes through a port."""
