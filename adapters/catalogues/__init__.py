"""Catalogues of a company's teams and services."""
