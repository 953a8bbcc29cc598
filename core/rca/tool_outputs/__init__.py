"""Find causes in the free text that tools return (`kubectl describe`, tables, events, logs, YAML, JSON)."""
