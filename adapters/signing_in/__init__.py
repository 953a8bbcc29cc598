"""Signing in with the accounts of a company, by OpenID Connect."""
