"""Catalogues that companies keep of their teams and services."""
