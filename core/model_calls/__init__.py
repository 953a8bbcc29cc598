"""Prompts for a language model, and the parsing of its replies."""
