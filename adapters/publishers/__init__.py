"""Systems in which people file issues and postmortems: one implementation of `core.ports.Publisher` per system."""
