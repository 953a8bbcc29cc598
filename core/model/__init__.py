"""Frozen types of the domain, and what they say of themselves."""
