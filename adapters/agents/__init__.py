"""Plumbline as a server of the Model Context Protocol, for agents outside of the chats."""
