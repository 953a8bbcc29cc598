"""Handling of feedback and incident outcomes, and the nightly learning from both."""
