"""One look as the judge sees it: its parties, an answer under consideration, and how both are called in sentences."""
