"""The local page: a chat without accounts, and what an operator wants to see."""
