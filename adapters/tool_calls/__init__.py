"""Native calls of tools, in place of one JSON object for each step of an investigation."""
