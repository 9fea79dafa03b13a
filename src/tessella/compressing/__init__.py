"""A smaller network that computes the same on a domain: what stable, equal and unread units leave."""
