"""Who is on call, read from the systems that hold the schedules."""
