"""The wiring of ports and adapters, part by part."""
