"""Durable work: tasks, workflows, schedules and replicas."""
