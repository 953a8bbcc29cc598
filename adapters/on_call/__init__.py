"""On-call schedules, one module per system."""
