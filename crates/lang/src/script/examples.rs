//! Examples of fields, for help texts about missing or mistyped fields.

/// An example of `key`, if one fits on a line.
pub fn example(key: &str) -> Option<&'static str> {
    Some(match key {
        "session" => "a script starts with a line `session:`, with its fields indented below it",
        "session_id" => "give the script an id, as in `session_id: intake`",
        "phases" => "write a list in which each phase starts with `- phase_id: …`",
        "phase_id" => "give the phase an id, as in `phase_id: opening`",
        "topics" => "write a list in which each topic starts with `- topic_id: …`",
        "topic_id" => "give the topic an id, as in `topic_id: family`",
        "actions" => "write a list in which each action starts with `- action_type: …`",
        "action_type" => "specify the type of the action, as in `action_type: set`",
        "action_id" => "give the action an id, as in `action_id: ask_name`",
        "content" => "write what to say, ask or think about: `content: …`, under `config:`",
        "output" => "write a list in which each item starts with `- get: …`",
        "get" => "name the variable that receives the value, as in `- get: user_name`",
        "declare" => "write a list in which each item starts with `- var: …`",
        "var" => "give the variable a name, as in `- var: user_name`",
        "values" => "specify what to set, as in `values: { attempts: 1 }`, under `config:`",
        "cases" => "write a list in which each case starts with `- when: …`",
        "when" => "write an expression, as in `when: age >= 18`",
        "condition" => "write an expression, as in `condition: age >= 18`",
        _ => return None,
    })
}
