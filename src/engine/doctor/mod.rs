//! A look at a project and its surroundings: what works, what does not, what to do.
