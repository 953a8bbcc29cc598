"""Microsoft Graph, as far as the knowledge sources and the chat share it."""
