"""The agent that looks for a root cause with tools: RCAgent (sections 3 and 3.4)."""
