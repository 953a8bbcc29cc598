"""Behaviours of the bot, one per file. Each depends only on core's types and ports."""
