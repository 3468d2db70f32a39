"""Tools of outside servers and our own, found by what they do and called through one gate."""
