"""Run long threads through Everthread and its peers, with a model that costs nothing, and measure what they do."""
