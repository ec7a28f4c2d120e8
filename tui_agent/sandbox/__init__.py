"""The sandbox of commands: what they may write, read and reach, enforced by the operating system."""
