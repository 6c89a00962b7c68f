"""What several test files share: random instances, pages, a browser."""
