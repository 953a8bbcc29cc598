"""The process: command line, HTTP server, wiring and durable work. The only package that imports all others."""
