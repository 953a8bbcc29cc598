"""Handlers of incidents, from the alert to the postmortem."""
