"""The screen: it draws the state and asks the operator. Before it has painted it imports nothing heavier than Textual."""
