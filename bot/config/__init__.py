"""Settings of the environment, and plumbline.yaml section by section."""
