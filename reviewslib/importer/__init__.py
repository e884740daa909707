"""`reviewsd-import`: exports of reviews become data files."""
