"""Handlers of the bot, one behaviour per file. Each depends only on core's types and ports."""
