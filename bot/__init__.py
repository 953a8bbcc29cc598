"""The process: the only package that knows every other."""
