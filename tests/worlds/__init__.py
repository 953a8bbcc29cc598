"""Ordinary Kubernetes worlds that are healthy, and twins of them with one fault, in every form in which they are read."""
