"""`reviewsd-insights`: a language model of the owner's choice annotates the reviews."""
