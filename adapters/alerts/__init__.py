"""Webhook formats of monitoring systems, one module each."""
