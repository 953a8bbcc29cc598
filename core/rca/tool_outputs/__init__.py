"""What tools return as free text (`kubectl describe`, tables, events, logs, YAML, JSON), read for why something broke."""
