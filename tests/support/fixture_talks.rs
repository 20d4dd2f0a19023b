//! The answers and the replies for conversations of `tests/fixtures/sessions/`.

use serde_json::{Value, json};

/// The start of the clock in every run. It advances 1 ms per event, so that all times can be compared.
pub const CLOCK: &str = "2026-11-21T20:00:00Z";

/// The answers of the short conversation, from which the offline responder takes the variables.
pub fn short_answer(answer_id: &str) -> String {
    let texts = ["小林", "不告诉你", "35", "茶、咖啡", "?", "?"];
    let number: usize = answer_id.strip_prefix('a').unwrap().parse().unwrap();
    texts[number - 1].to_owned()
}

/// The answers in the conversation with routes: the person is first stuck, then in danger, then well again.
pub fn routed_answer(answer_id: &str) -> String {
    let texts = ["小林", "不想说", "好吧", "有时候不想活了", "安全", "母亲还好", "父亲也好", "很好", "谢谢"];
    let number: usize = answer_id.strip_prefix('a').unwrap().parse().unwrap();
    texts[number - 1].to_owned()
}

/// The model's replies in the conversation with routes.
pub fn routed_replies() -> Value {
    let reply = |content: &str, exit: bool, suggestion: &str| {
        json!({
            "safety_risk": { "detected": false }, "content": content, "EXIT": if exit { "YES" } else { "NO" }, "BRIEF": "",
            "metrics": { "information_completeness": "一般", "user_engagement": "投入", "emotional_intensity": "平静", "reply_relevance": "切题" },
            "progress_suggestion": suggestion, "metadata": { "emotional_tone": "平静", "crisis_signal": false },
        })
    };
    let next_step = "continue_needed";
    let reply_with_name = |name: &str| {
        let mut reply = reply("记下了", true, next_step);
        reply["name"] = json!(name);
        reply
    };
    json!({ "replies": {
        "ask_name": [reply_with_name("小林")],
        "ask_family": [reply("没关系，慢慢来", false, "blocked"), reply("谢谢", true, next_step)],
        "ask_person": [reply("嗯", false, next_step), reply("好", true, next_step), reply("嗯", false, next_step), reply("好", true, next_step)],
        "ask_safe": [reply("我们在这里", true, next_step)],
        "ask_last": [reply("再见", true, next_step)],
    }})
}
