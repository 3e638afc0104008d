"""What a build will show, and how to get the rest."""
