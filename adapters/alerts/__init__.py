"""Webhook formats, one module each: a request body is parsed into an AlertDelivery.

`parse(body, received_at)` raises MalformedInput for a body in another format, and returns None for one without an
alert, such as a test notification. `is_signed(headers, body, secret)` exists if the sender signs its requests.
"""
