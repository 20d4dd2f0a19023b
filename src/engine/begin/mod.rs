//! What a new project, script, skill, test or scheme is made of.
