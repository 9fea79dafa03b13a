"""A hunter: networks that are meant to break claims, and every verb asked about them, against rational arithmetic."""
