"""What the bot does, one behaviour per file: a message and the ports it needs, nothing else."""
