//! The prompts that a template makes, without asking any model.
