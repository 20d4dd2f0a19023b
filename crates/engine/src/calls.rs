//! Number, tokens, time and cost of the model calls of a session: per call, per action, and in total. Reads the `model_calls` of an export.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use bcc_lang::message::language::Language;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::source::render::visible::visible_line;
use bcc_llm::reply::strategies::ParseStrategy;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    pub calls: u64,
    /// The calls that asked the model again after an unusable reply.
    pub reasks: u64,
    /// The requests that were sent for them.
    pub attempts: u64,
    /// Tokens of the prompts, as far as they were counted.
    pub tokens_in: u64,
    /// Tokens of the replies, as far as they were counted.
    pub tokens_out: u64,
    pub ms: u64,
    /// The cost by currency, as far as prices are configured.
    pub cost: BTreeMap<String, f64>,
}

impl Usage {
    /// Adds a `model_call` event.
    pub fn add(&mut self, call: &Value) {
        let number = |name: &str| call.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.calls += 1;
        self.reasks += u64::from(number("reask") > 0);
        let total = |total: u64, name| total.saturating_add(number(name));
        self.attempts = total(self.attempts, "attempts");
        self.tokens_in = total(self.tokens_in, "tokens_in");
        self.tokens_out = total(self.tokens_out, "tokens_out");
        self.ms = total(self.ms, "ms");
        let cost = call.get("cost").and_then(Value::as_f64);
        if let (Some(cost), Some(currency)) = (cost, call.get("currency").and_then(Value::as_str)) {
            *self.cost.entry(currency.to_owned()).or_default() += cost;
        }
    }

    fn as_value(&self) -> Value {
        json!({
            "calls": self.calls, "reasks": self.reasks, "attempts": self.attempts, "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out, "ms": self.ms, "cost": self.cost,
        })
    }

    /// The cost for people: `0.12 CNY + 0.003 USD`; empty if no cost is known.
    pub(crate) fn cost_text(&self) -> String {
        let text = |(currency, amount): (&String, &f64)| format!("{} {currency}", format_amount(*amount));
        self.cost.iter().map(text).collect::<Vec<_>>().join(" + ")
    }
}

/// The `usage` of an export: of the session, and of each action and purpose in the order of their first calls.
pub fn usage(calls: &[Value]) -> Value {
    let actions: Vec<Value> = by_action(calls)
        .into_iter()
        .map(|((action_id, purpose), usage)| {
            let mut row = json!({ "action_id": action_id, "purpose": purpose });
            if let (Value::Object(row), Value::Object(usage)) = (&mut row, usage.as_value()) {
                row.extend(usage);
            }
            row
        })
        .collect();
    json!({ "session": total(calls).as_value(), "actions": actions })
}

pub fn total(calls: &[Value]) -> Usage {
    let mut usage = Usage::default();
    calls.iter().for_each(|call| usage.add(call));
    usage
}

fn by_action(calls: &[Value]) -> Vec<((String, String), Usage)> {
    let mut totals: Vec<((String, String), Usage)> = Vec::new();
    for call in calls {
        let key = (text(call, "/location/action_id"), text(call, "/purpose"));
        match totals.iter_mut().find(|(known, _)| *known == key) {
            Some((_, usage)) => usage.add(call),
            None => {
                let mut usage = Usage::default();
                usage.add(call);
                totals.push((key, usage));
            }
        }
    }
    totals
}

/// `sessions show --calls`: every call of an export, then the totals, in `language`.
pub fn table(export: &Value, language: Language) -> String {
    let none = Vec::new();
    let calls = export.get("model_calls").and_then(Value::as_array).unwrap_or(&none);
    if calls.is_empty() {
        return language.translate("no model has been called yet").into_owned();
    }
    let head = ["seq", "action", "round", "for", "model", "in", "out", "first", "total", "tries", "read", "cost"];
    let rows = calls.iter().map(|call| row(call, language));
    let mut output = columns(&head, language, &[0, 2, 5, 6, 7, 8, 9], rows.collect());
    let usage = |name: String, purpose: String, usage: &Usage| {
        let Usage { calls, reasks, attempts, tokens_in, tokens_out, ms, .. } = usage;
        let numbers = [*calls, *reasks, *attempts, *tokens_in, *tokens_out].map(|number| number.to_string());
        let mut cells = vec![name, purpose];
        cells.extend(numbers);
        cells.extend([seconds(Some(*ms)), dash(usage.cost_text())]);
        cells
    };
    let mut totals: Vec<Vec<String>> =
        by_action(calls).into_iter().map(|((action, purpose), sum)| usage(action, purpose, &sum)).collect();
    totals.push(usage(language.translate("all").into_owned(), String::new(), &total(calls)));
    let head = ["action", "for", "calls", "asked again", "tries", "in", "out", "total", "cost"];
    let _ = write!(output, "\n{}", columns(&head, language, &[2, 3, 4, 5, 6, 7], totals));
    output.trim_end().to_owned()
}

fn row(call: &Value, language: Language) -> Vec<String> {
    let number = |name: &str| dash(call.get(name).and_then(Value::as_u64).map(|n| n.to_string()).unwrap_or_default());
    let round = call.pointer("/location/round").and_then(Value::as_u64).map(|n| n.to_string());
    let ms = |name: &str| seconds(call.get(name).and_then(Value::as_u64));
    let mut model = text(call, "/model");
    for skipped in call.get("passed_over").and_then(Value::as_array).into_iter().flatten() {
        let _ = write!(model, " {}", language.format("(instead of {model})", &[("model", &text(skipped, "/model"))]));
    }
    let is_again = call.get("reask").and_then(Value::as_u64).is_some_and(|reask| reask > 0);
    let again = is_again.then_some(Message::word("again"));
    let purpose = Message::list(Joint::Comma, [Message::text(text(call, "/purpose"))].into_iter().chain(again));
    let cost = call
        .get("cost")
        .and_then(Value::as_f64)
        .map(|cost| format!("{} {}", format_amount(cost), text(call, "/currency")));
    vec![
        number("seq"),
        dash(text(call, "/location/action_id")),
        dash(round.unwrap_or_default()),
        purpose.render(language),
        dash(model),
        number("tokens_in"),
        number("tokens_out"),
        ms("first_token_ms"),
        ms("ms"),
        number("attempts"),
        parse_status(call).render(language),
        dash(cost.unwrap_or_default()),
    ]
}

/// How the reply was parsed, for the column `read`.
fn parse_status(call: &Value) -> Message {
    let count = call.get("parse_retry_count").and_then(Value::as_u64);
    let Some(count) = count else { return Message::word("no reply") };
    if call.get("error").is_some_and(|error| !error.is_null()) {
        return Message::word("unreadable");
    }
    let strategy = ParseStrategy::ALL.into_iter().find(|strategy| u64::from(strategy.number()) == count);
    let mut status = vec![Message::text(strategy.map_or_else(|| count.to_string(), |known| known.name().to_owned()))];
    if call.get("bent").and_then(Value::as_array).is_some_and(|coerced| !coerced.is_empty()) {
        status.push(Message::word("coerced"));
    }
    if call.get("cut_off") == Some(&Value::Bool(true)) {
        status.push(Message::word("truncated"));
    }
    Message::list(Joint::Comma, status)
}

/// Lays out rows under a head, with wide characters counted as two columns. The columns in `right` are right-aligned.
fn columns(head: &[&str], language: Language, right: &[usize], rows: Vec<Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|name| language.translate(name).into_owned()).collect();
    let rows = rows.iter().map(|row| row.iter().map(|cell| visible_line(cell)).collect());
    let all: Vec<Vec<String>> = std::iter::once(head.clone()).chain(rows).collect();
    let width =
        |column: usize| all.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut output = String::new();
    for row in &all {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width.saturating_sub(cell.width()));
            let gap = if column == 0 { "" } else { "  " };
            let _ = match right.contains(&column) {
                true => write!(line, "{gap}{space}{cell}"),
                false => write!(line, "{gap}{cell}{space}"),
            };
        }
        let _ = writeln!(output, "{}", line.trim_end());
    }
    output
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn dash(text: String) -> String {
    if text.is_empty() { "–".to_owned() } else { text }
}

fn seconds(ms: Option<u64>) -> String {
    ms.map_or_else(|| "–".to_owned(), |ms| format!("{}.{:03} s", ms / 1000, ms % 1000))
}

/// An amount without trailing zeros, with at most six decimal places.
fn format_amount(amount: f64) -> String {
    let text = format!("{amount:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_server_reports_do_not_overflow() {
        let mut usage = Usage::default();
        for _ in 0..2 {
            usage.add(&json!({ "tokens_in": u64::MAX, "tokens_out": u64::MAX, "ms": u64::MAX, "attempts": u64::MAX }));
        }
        assert_eq!([usage.tokens_in, usage.tokens_out, usage.ms, usage.attempts], [u64::MAX; 4]);
    }

    fn calls() -> Vec<Value> {
        let at = |action: &str, round: u64| json!({ "action_id": action, "round": round });
        vec![
            json!({ "seq": 5, "location": at("问名字", 1), "purpose": "action", "model": "local:通义", "tokens_in": 1200,
                "tokens_out": 80, "ms": 2345, "first_token_ms": 310, "attempts": 2, "parse_retry_count": 3, "bent": [1],
                "error": null, "cost": 0.0125, "currency": "CNY", "passed_over": [{ "model": "big", "error": "x" }] }),
            json!({ "seq": 9, "location": at("ask_age", 2), "purpose": "action", "model": "offline", "tokens_in": null,
                "tokens_out": null, "ms": 0, "first_token_ms": null, "attempts": 1, "parse_retry_count": 3, "bent": [],
                "error": "the reply could not be read", "cut_off": true }),
            json!({ "seq": 10, "location": at("ask_age", 2), "purpose": "action", "model": "m", "tokens_in": 10, "tokens_out": 5,
                "ms": 5, "attempts": 1, "parse_retry_count": 1, "bent": [], "error": null, "reask": 1, "cost": 0.1,
                "currency": "USD" }),
            json!({ "seq": 12, "location": at("问名字", 1), "purpose": "monitor", "model": "m", "ms": 1, "attempts": 3,
                "parse_retry_count": null, "error": "gone" }),
        ]
    }

    #[test]
    fn every_call_and_every_sum_stands_in_its_column() {
        insta::assert_snapshot!(table(&json!({ "model_calls": calls() }), Language::English));
        assert_eq!(table(&json!({ "model_calls": [] }), Language::English), "no model has been called yet");
    }

    #[test]
    fn totals_are_separate_by_currency_action_and_purpose() {
        let usage = usage(&calls());
        assert_eq!(usage["session"]["calls"], 4);
        assert_eq!(usage["session"]["reasks"], 1);
        assert_eq!(usage["session"]["attempts"], 7);
        assert_eq!(usage["session"]["cost"], json!({ "CNY": 0.0125, "USD": 0.1 }));
        let rows: Vec<_> =
            usage["actions"].as_array().unwrap().iter().map(|row| (&row["action_id"], &row["calls"])).collect();
        assert_eq!(
            rows,
            [(&json!("问名字"), &json!(1)), (&json!("ask_age"), &json!(2)), (&json!("问名字"), &json!(1))]
        );
    }

    #[test]
    fn an_amount_has_no_trailing_zeros() {
        for (amount, expected) in
            [(0.0, "0"), (1.0, "1"), (0.1 + 0.2, "0.3"), (0.000_001_4, "0.000001"), (12.5, "12.5")]
        {
            assert_eq!(format_amount(amount), expected);
        }
    }
}
