"""Lower bounds that hold with a probability: MIPBound (Serra and Ramalingam 2020, Algorithm 1)."""
