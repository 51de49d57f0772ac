"""The plain pages: HTML made on the server, readable without JavaScript. `html.el` escapes whatever is not Html."""
