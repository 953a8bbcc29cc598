"""Ingestion of knowledge sources, and learning from what was read."""
