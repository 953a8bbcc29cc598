"""Why did it break: signs in logs and metrics, changes, and the hypotheses they support."""
