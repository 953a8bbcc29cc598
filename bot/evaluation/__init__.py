"""Each measure of `plumbline eval`: files in, figures out."""
