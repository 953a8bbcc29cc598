"""Slack: inbound events and outbound messages."""
