"""Handlers of questions, commands, corrections and the home page."""
