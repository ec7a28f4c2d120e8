"""The screens: the live one, the replay, and those that open over them."""
