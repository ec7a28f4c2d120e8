"""Colours, the first picture, and the small parts that every screen has."""
