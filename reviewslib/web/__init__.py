"""What is served over HTTP: pages, feeds and other documents, and their routes."""
