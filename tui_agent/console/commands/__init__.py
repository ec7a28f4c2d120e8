"""What the commands of each screen show and ask; what they do is in `frontend.commands`."""
