"""Triangle: agents of a language model that find the owner of an incident by negotiation."""
