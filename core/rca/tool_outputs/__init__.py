"""The outputs of tools: their blocks, and what each shows."""
