"""Lines and passages of styled text, as plain values."""
