"""A plugin of Plumbline: a webhook and a source."""
