"""Readers of on-call schedules, one for each system that holds them."""
