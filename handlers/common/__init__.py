"""Ground floor of the handlers: ports, posts, stored incidents and recorded predictions."""
