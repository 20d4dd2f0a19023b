//! `/prompt`: the last prompt that was sent to the model.

use serde_json::Value;

use crate::cli::language::translated;

/// The messages that were sent in the turn of `outcome`, the last one. A call that no outcome contains, such as those of a `behavior_loop`,
/// has them in its event: `call` is the last one.
pub fn prompt(outcome: &Value, call: &Value) -> String {
    let seq = |event: &Value| event.get("seq").and_then(Value::as_u64);
    let is_of_action = call.get("purpose").and_then(Value::as_str) == Some("action");
    let is_of_same_action = || call.pointer("/location/path") == outcome.pointer("/location/path");
    let of_outcome = sent(outcome);
    let of_call = sent(call)
        .filter(|_| is_of_action && (seq(call) > seq(outcome) || of_outcome.is_none() && is_of_same_action()));
    let Some(messages) = of_call.or(of_outcome) else {
        return translated("the last turn did not call a model").into_owned();
    };
    let shown = messages.iter().map(|message| {
        let field = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        format!("[{}]\n{}", field("role"), field("content"))
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

fn sent(event: &Value) -> Option<&Vec<Value>> {
    event.pointer("/debug_info/llm_prompt").and_then(Value::as_array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_prompt_of_a_call_without_an_outcome_is_shown() {
        let event = |seq: u64, path: &str, text: Option<&str>| {
            let messages = text.map(|text| json!([{ "role": "user", "content": text }]));
            json!({ "seq": seq, "purpose": "action", "location": { "path": path }, "debug_info": { "llm_prompt": messages } })
        };
        let nothing = "the last turn did not call a model";
        let (asked, said) = (event(5, "t/ask", Some("outcome")), event(5, "t/say", None));
        for (outcome, call, expected) in [
            (&asked, Value::Null, "[user]\noutcome"),
            (&asked, event(3, "t/ask", Some("rejected")), "[user]\noutcome"),
            (&asked, event(4, "t/ask", None), "[user]\noutcome"),
            (&asked, event(7, "t/loop", Some("behavior")), "[user]\nbehavior"),
            (&said, event(4, "t/loop", Some("behavior")), nothing),
            (&event(9, "t/loop", None), event(7, "t/loop", Some("behavior")), "[user]\nbehavior"),
            (&said, Value::Null, nothing),
        ] {
            assert_eq!(prompt(outcome, &call), expected, "{outcome} {call}");
        }
        let mut monitor = event(7, "t/ask", Some("monitor"));
        monitor["purpose"] = json!("monitor");
        assert_eq!(prompt(&asked, &monitor), "[user]\noutcome");
    }
}
