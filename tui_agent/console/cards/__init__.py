"""Questions of the loop as cards at the end of the conversation, one file a kind."""
