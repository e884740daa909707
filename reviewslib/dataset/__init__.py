"""Reviews and insights as values: the rules of data files, and search."""
