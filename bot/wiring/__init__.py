"""What is connected with what, part by part."""
