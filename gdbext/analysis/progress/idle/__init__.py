"""Programs that are idle as a whole: servers without requests, and loops that go on whatever happens."""
