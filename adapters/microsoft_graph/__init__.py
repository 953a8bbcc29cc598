"""Microsoft Graph, shared by the knowledge sources and the chat."""
