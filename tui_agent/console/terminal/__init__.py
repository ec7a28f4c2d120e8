"""Between Textual and the terminal: input, output, timing."""
