"""Find the owner of an incident: candidates, their managers, and the negotiation (Triangle)."""
