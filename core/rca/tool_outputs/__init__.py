"""Free text that tools return (`kubectl describe`, tables, events, logs, YAML, JSON), read for why something broke."""
