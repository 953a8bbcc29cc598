"""Slack: events in, messages out."""
