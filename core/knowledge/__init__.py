"""Split documents into passages, index them, and retrieve ranked evidence."""
