"""What is said: lines and passages of styled text, as plain values."""
