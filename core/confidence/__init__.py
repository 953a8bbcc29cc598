"""Confidence: raw measures of the evidence, calibrated on labelled outcomes and shown as a badge."""
