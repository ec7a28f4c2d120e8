"""Logins to MCP servers by OAuth 2.1: how one is made, what is kept of it, how requests carry and renew its token.

The shapes of messages, and most checks of them, are the SDK's. Its `OAuthClientProvider` is not used: it logs in in the
middle of a call, knows neither expiry nor token endpoint after a restart, and renews without regard to other processes.
"""
