"""Feedback of people, outcomes of incidents, and what is learned from both."""
