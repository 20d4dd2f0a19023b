//! What a field looks like, for the author who left it out or wrote something else in its place.

/// How `key` is written, when that can be said in a line.
pub fn example(key: &str) -> Option<&'static str> {
    Some(match key {
        "session" => "a script begins with a line `session:`, and its fields stand indented below",
        "session_id" => "give the script an id, as in `session_id: intake`",
        "phases" => "write a list, in which each phase begins with `- phase_id: …`",
        "phase_id" => "give the phase an id, as in `phase_id: opening`",
        "topics" => "write a list, in which each topic begins with `- topic_id: …`",
        "topic_id" => "give the topic an id, as in `topic_id: family`",
        "actions" => "write a list, in which each action begins with `- action_type: …`",
        "action_type" => "say of which kind the action is, as in `action_type: set`",
        "action_id" => "give the action an id, as in `action_id: ask_name`",
        "content" => "say what is to be said, asked or thought about: `content: …`, under `config:`",
        "output" => "write a list, in which each item begins with `- get: …`",
        "get" => "name the variable that takes it, as in `- get: user_name`",
        "declare" => "write a list, in which each item begins with `- var: …`",
        "var" => "give the variable a name, as in `- var: user_name`",
        "values" => "say what is set, as in `values: { attempts: 1 }`, under `config:`",
        "cases" => "write a list, in which each case begins with `- when: …`",
        "when" => "write an expression, as in `when: age >= 18`",
        "condition" => "write an expression, as in `condition: age >= 18`",
        _ => return None,
    })
}
