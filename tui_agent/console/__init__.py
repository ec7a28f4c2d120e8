"""The screen. It draws the state and asks the operator; it imports Textual and nothing heavier before it has painted."""
