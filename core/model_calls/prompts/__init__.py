"""Prompts for the language model: one text file per prompt, with one typed render function."""
