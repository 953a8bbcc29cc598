"""Root-cause analysis: signs in logs and metrics, changes, and the hypotheses that they support."""
