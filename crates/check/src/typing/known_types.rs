//! What is known about the types of names of the engine and of tests.

/// The names of the engine whose values are always text.
pub(super) const TEXTS: [&str; 7] =
    ["time", "who", "user", "last_user_message", "topic_goal", "phase_goal", "global_goal"];

/// The names of the engine that are numbers, or null without a round.
pub(super) const NUMBERS: [&str; 2] = ["current_round", "max_rounds"];

/// The tests that give a boolean for every value, null included.
pub(super) const TESTS_OF_ANY_VALUE: [&str; 15] = [
    "defined",
    "undefined",
    "none",
    "boolean",
    "number",
    "integer",
    "int",
    "float",
    "string",
    "sequence",
    "iterable",
    "mapping",
    "sameas",
    "true",
    "false",
];
