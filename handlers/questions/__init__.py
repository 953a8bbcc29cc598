"""Handlers of what people write and press: questions, commands, corrections and the home page."""
