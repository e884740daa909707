"""Reviews and insights as values: what files may hold, and what callers may ask of them."""
