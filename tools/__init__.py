"""What looks after this repository: notebooks, their gates, the repository's address."""
