"""The local page: a chat without accounts, and pages for operators."""
