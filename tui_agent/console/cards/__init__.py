"""Questions to the operator as cards at the end of the conversation, one file for each kind."""
