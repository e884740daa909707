"""`reviewsd-insights`: a language model of the owner's choice reads the reviews."""
