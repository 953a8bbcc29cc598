"""One module per webhook format: a request body in, an AlertDelivery out."""
