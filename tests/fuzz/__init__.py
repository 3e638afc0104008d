"""Objects and documents made from the types of the model: good ones, and what somebody may have made of them."""
