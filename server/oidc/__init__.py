"""Signing in by a provider of OpenID Connect: authorization code with PKCE, a state and a nonce."""
