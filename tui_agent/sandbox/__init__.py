"""The walls around commands: what they may write, read and reach, held by the operating system."""
