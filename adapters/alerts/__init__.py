"""One module per webhook format: a request body in, an AlertDelivery out.

`parse(body, received_at)` raises MalformedInput for a body that is not of its format, and returns None for one that says
nothing of an alert: a test notification, or news of something else. `is_signed(headers, body, secret)` stands where the
sender signs its requests.
"""
