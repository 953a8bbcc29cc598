"""Read the state of a Kubernetes cluster from what tools print, and find what is wrong with its objects."""
