"""What we know of engines and libraries, as rows. No logic: analysis reads the rows, tests check them."""
