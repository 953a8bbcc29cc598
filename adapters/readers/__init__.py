"""The declarative reader of HTTP APIs, and a definition of each system that it reads, in YAML."""
