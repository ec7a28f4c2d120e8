"""The screen: it draws the state and asks the operator.

Before its first paint it imports nothing heavier than Textual.
"""
