"""Confidence: what the evidence says, mapped to what has turned out right, shown as a badge."""
