"""Pages rendered by the server: resume links, forms, chats, sign-in, and a page for servers without the editor."""
