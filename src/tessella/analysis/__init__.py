"""All that is known of a network in a given time: the bracket, and which of several networks has more regions."""
