"""Measures of `plumbline eval`, each from files to figures."""
