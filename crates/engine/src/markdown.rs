//! `sessions export --format md`: a session as a Markdown document, in which texts are literal; `sessions show` is the same for a
//! terminal.

use bcc_runtime::program::stored_event::message_at;
use std::fmt::Write;

use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::calls::total;
use crate::clock::in_zone;
use crate::error::EngineError;
use crate::export::{end_reason, stored_session};
use crate::script_names::ScriptNames;
use crate::usage::usage_summary;
use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::source::render::markdown::{code_span, escape_line, escape_lines};
use bcc_lang::source::render::visible::{visible, visible_line};
use bcc_lang::value::exact::ExactValue;
use bcc_store::contract::Store;

/// Where a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// By programs that render Markdown: texts are escaped.
    Markdown,
    /// As it is, on a terminal.
    Terminal,
}

impl Medium {
    /// A text of a person, a model or a script on one line.
    fn line(self, text: &str) -> String {
        match self {
            Self::Markdown => escape_line(text),
            Self::Terminal => visible_line(text),
        }
    }

    /// A text with its lines, in a list item.
    fn lines(self, text: &str) -> String {
        match self {
            Self::Markdown => escape_lines(text, "  "),
            Self::Terminal => visible(text).replace('\n', "\n  "),
        }
    }

    /// A name.
    fn name(self, name: &str) -> String {
        match self {
            Self::Markdown => code_span(name),
            Self::Terminal => format!("`{}`", visible_line(name)),
        }
    }
}

/// What a document shows of a session in addition to its export.
#[derive(Clone, Debug)]
pub struct DocumentDetails {
    medium: Medium,
    names: ScriptNames,
    /// Why the session failed or stopped.
    reason: Option<Message>,
    /// The time zone of the times.
    zone: TimeZone,
}

impl DocumentDetails {
    /// The details of a stored session, with times in the time zone of the machine.
    ///
    /// # Errors
    /// There is no such session, or the store cannot be read.
    pub async fn of_session(store: &dyn Store, id: &str, medium: Medium) -> Result<Self, EngineError> {
        let row = stored_session(store, id).await?;
        let names = ScriptNames::of_session(store, &row).await;
        Ok(Self { medium, names, reason: end_reason(store, &row).await?, zone: TimeZone::system() })
    }

    fn moment(&self, stamp: &str) -> Option<Zoned> {
        in_zone(stamp, &self.zone)
    }

    /// The names of the phase, the topic and the skills of a location.
    fn place(&self, location: &Value) -> String {
        let part = |name: &str| location.get(name).and_then(Value::as_str).filter(|part| !part.is_empty());
        let names = self.names.place(part("phase_id"), part("topic_id"), part("path").unwrap_or_default());
        names.iter().map(|name| self.medium.line(name)).collect::<Vec<_>>().join(" › ")
    }
}

/// The document of an export. Its fixed texts are in `language`; names, values and messages are not translated.
pub fn markdown(export: &ExactValue, details: &DocumentDetails, language: Language) -> String {
    let mut document = String::new();
    head(&mut document, export, details, language);
    let _ = writeln!(document, "\n## {}\n", language.translate("Conversation"));
    transcript(&mut document, export, details, language);
    advice(&mut document, export, details, language);
    plans(&mut document, export, details, language);
    let _ = writeln!(document, "\n## {}\n", language.translate("Variables"));
    for (scope, values) in export.field("variables").iter().flat_map(ExactValue::fields) {
        let nested = matches!(scope, "phase" | "topic");
        for (name, value) in values.fields() {
            if !nested {
                line(&mut document, scope, name, &value, details, language);
                continue;
            }
            for (inner, value) in value.fields() {
                line(&mut document, &format!("{scope} {name}"), inner, &value, details, language);
            }
        }
    }
    document.trim_end().to_owned()
}

/// The title, and the facts about the session.
fn head(document: &mut String, export: &Value, details: &DocumentDetails, language: Language) {
    let filled = |literal: &str, values: &[(&str, &str)]| language.format(literal, values);
    let text = |pointer: &str| details.medium.line(&export.pointer(pointer).map(shown).unwrap_or_default());
    let name = match export.pointer("/session/script_name") {
        Some(Value::String(name)) => details.medium.line(name),
        _ => text("/session/script"),
    };
    let _ = writeln!(document, "# {name}\n");
    let _ = writeln!(document, "{}", filled("- user: {user}", &[("user", &text("/session/user"))]));
    let moments = ["/session/started_at", "/session/updated_at"]
        .map(|pointer| details.moment(export.pointer(pointer).and_then(Value::as_str).unwrap_or_default()));
    if let [Some(from), Some(to)] = moments {
        let time = |moment: &Zoned| moment.strftime("%Y-%m-%d %H:%M").to_string();
        let zone = to.strftime("%:z").to_string();
        let values = [("from", &*time(&from)), ("to", &*time(&to)), ("zone", &*zone)];
        let _ = writeln!(document, "{}", filled("- from {from} to {to} (UTC{zone})", &values));
    }
    let status = text("/session/status");
    let values = [("id", &*text("/session/id")), ("status", &*language.translate(&status))];
    let _ = writeln!(document, "{}", filled("- session: {id} ({status})", &values));
    if let Some(reason) = &details.reason {
        let reason = details.medium.line(&reason.render(language));
        let literal = if status == "failed" { "- failed because: {reason}" } else { "- stopped because: {reason}" };
        let _ = writeln!(document, "{}", filled(literal, &[("reason", &reason)]));
    }
    let place = export.pointer("/session/location").map(|location| details.place(location));
    if let Some(place) = place.filter(|place| !place.is_empty()) {
        let round = export.pointer("/session/location/round").and_then(Value::as_u64);
        let round = round.map(|round| filled(", round {round}", &[("round", &round.to_string())])).unwrap_or_default();
        let place = format!("{place}{round}");
        let _ = writeln!(document, "{}", filled("- at: {place}", &[("place", &place)]));
    }
    notebook(document, export, details, language);
    for effect in export.pointer("/session/open_effects").and_then(Value::as_array).into_iter().flatten() {
        let kind = details.medium.line(&effect.get("kind").map(shown).unwrap_or_default());
        let summary = details.medium.line(&message_at(effect, "/summary").render(language));
        let values = [("kind", &*kind), ("summary", &*summary)];
        let literal = "- open effect: {summary} ({kind}), announced but not known to have ended";
        let _ = writeln!(document, "{}", filled(literal, &values));
    }
    for taken_back in list(export, "taken_back") {
        let at = taken_back.get("at").map(shown).unwrap_or_default();
        let at = details
            .moment(&at)
            .map_or_else(|| details.medium.line(&at), |moment| moment.strftime("%Y-%m-%d %H:%M").to_string());
        let _ = writeln!(document, "{}", filled("- an answer was taken back at {at}", &[("at", &at)]));
    }
    let used = export.pointer("/session").map(usage_summary).unwrap_or_default();
    let _ = writeln!(document, "{}", filled("- used: {used}", &[("used", &used.render(language))]));
    let calls = export.get("model_calls").and_then(Value::as_array);
    let cost = calls.map(|calls| total(calls).cost_text()).filter(|cost| !cost.is_empty());
    if let Some(cost) = cost {
        let _ = writeln!(document, "{}", filled("- cost: {cost}", &[("cost", &cost)]));
    }
}

/// The messages, each with its speaker and its time, under headings for the parts of the script. A new day has its own line.
fn transcript(document: &mut String, export: &Value, details: &DocumentDetails, language: Language) {
    let (mut last_place, mut last_day) = (String::new(), None);
    for message in list(export, "transcript") {
        let field = |name: &str| message.get(name).map(shown).unwrap_or_default();
        let place = details.place(message);
        if place != last_place && !place.is_empty() {
            let gap = if last_place.is_empty() { "" } else { "\n" };
            let _ = writeln!(document, "{gap}### {place}\n");
            last_place = place;
        }
        let moment = details.moment(&field("at"));
        let day = moment.as_ref().map(|moment| moment.strftime("%Y-%m-%d").to_string());
        if let Some(day) = day.filter(|day| last_day.as_ref() != Some(day)) {
            if last_day.is_some() {
                let _ = writeln!(document, "- *{day}*");
            }
            last_day = Some(day);
        }
        let text = details.medium.lines(&field("text"));
        let role = field("role");
        let speaker = details.medium.line(details.names.speaker(&role));
        let time = moment.map(|moment| moment.strftime("%H:%M").to_string()).unwrap_or_default();
        let values = [("speaker", &*speaker), ("time", &*time), ("text", &*text)];
        let _ = writeln!(document, "{}", language.format("- **{speaker}** ({time}): {text}", &values));
    }
}

/// The number of cells of the notebook, and how its code ended. The cells are in `--format ipynb` and in the JSON export.
fn notebook(document: &mut String, export: &Value, details: &DocumentDetails, language: Language) {
    let Some(notebook) = export.get("notebook") else { return };
    let cells = || list(notebook, "cells");
    let counted = |is: fn(&Value) -> bool| cells().filter(|cell| is(cell)).count().to_string();
    let code = counted(|cell| cell.get("type") == Some(&Value::from("code")));
    let ran = counted(|cell| cell.get("ended").is_some_and(Value::is_string));
    let failed = counted(|cell| cell.get("ended").and_then(Value::as_str).is_some_and(|ended| ended != "ok"));
    let title = notebook
        .get("title")
        .and_then(Value::as_str)
        .map(|title| format!(" “{}”", details.medium.line(title)))
        .unwrap_or_default();
    let cells = counted(|_| true);
    let values = [("title", &*title), ("cells", &*cells), ("code", &*code), ("ran", &*ran), ("failed", &*failed)];
    let literal = "- notebook{title}: {cells} cells, {code} of which are code; {ran} ran, {failed} of which failed";
    let _ = writeln!(document, "{}", language.format(literal, &values));
}

fn advice(document: &mut String, export: &Value, details: &DocumentDetails, language: Language) {
    let advice = |row: &&Value| row.pointer("/analysis/feedback_for_action").is_some_and(Value::is_string);
    for (number, row) in list(export, "monitor_feedback").filter(advice).enumerate() {
        if number == 0 {
            let _ = writeln!(document, "\n## {}\n", language.translate("Monitor advice"));
        }
        let field = |pointer: &str| details.medium.line(&row.pointer(pointer).map(shown).unwrap_or_default());
        let used = if row.get("used") == Some(&Value::Bool(true)) { "used" } else { "not used" };
        let (action, round) = (field("/action_id"), field("/round"));
        let advice = field("/analysis/feedback_for_action");
        let used = language.translate(used);
        let values = [("action", &*action), ("round", &*round), ("used", &*used), ("advice", &*advice)];
        let _ = writeln!(document, "{}", language.format("- {action}, round {round} ({used}): {advice}", &values));
    }
}

fn plans(document: &mut String, export: &Value, details: &DocumentDetails, language: Language) {
    for (number, row) in list(export, "plans").enumerate() {
        if number == 0 {
            let _ = writeln!(document, "\n## {}\n", language.translate("Plans"));
        }
        let change = details.medium.line(&row.get("change").map(shown).unwrap_or_default());
        let accepted = if row.get("accepted") == Some(&Value::Bool(true)) { "accepted" } else { "refused" };
        let reason = details.medium.line(&message_at(row, "/why").render(language));
        let _ = writeln!(document, "- {change} {}: {reason}", language.translate(accepted));
    }
}

fn list<'e>(export: &'e Value, name: &str) -> impl Iterator<Item = &'e Value> {
    export.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn line(
    document: &mut String,
    scope: &str,
    name: &str,
    variable: &ExactValue,
    details: &DocumentDetails,
    language: Language,
) {
    let value = variable.field("value").unwrap_or_default();
    let value = details.medium.line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let source = details.medium.line(&variable.get("source").map(shown).unwrap_or_default());
    let (scope, name) = (details.medium.line(scope), details.medium.name(name));
    let set_by = language.format("(set by {source})", &[("source", &source)]);
    let _ = writeln!(document, "- {scope}: {name} = {value} {set_by}");
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
