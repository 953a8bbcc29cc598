"""Frozen types of the domain. Imports no other package of the product."""
