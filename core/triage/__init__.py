"""Whose incident is it: candidates, their managers, and the negotiation (Triangle)."""
