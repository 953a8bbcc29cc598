"""The parts of an incident as a whole: its group, its message, its details, its runbook and its thread."""
