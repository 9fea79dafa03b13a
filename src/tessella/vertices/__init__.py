"""The walk over cells held by their corners, for few inputs."""
