"""Behaviours of an incident, from its alert to its postmortem."""
