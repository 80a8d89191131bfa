"""What a language model adds to the rules, measured with a real one."""
