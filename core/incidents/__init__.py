"""Incidents: grouping, messages, details, runbooks, thread notes, filing and postmortems."""
