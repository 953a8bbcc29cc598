"""What people and outcomes say of a claim, and what is learned from it."""
