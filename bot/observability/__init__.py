"""Metrics and traces of the bot itself."""
