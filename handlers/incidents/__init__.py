"""An incident from its alert to its postmortem."""
