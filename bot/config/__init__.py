"""Settings from the environment, and the sections of plumbline.yaml."""
