//! Writes plans: as JSON, or as the XML that older clients read.

use std::fmt::Write as _;

use axum::http::{HeaderMap, header};
use serde_json::{Map, Value, json};

use crate::behavior::plan::{PlannedBehavior, PlannedItem, WorkflowPlan};

/// How a plan is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkflowPlanFormat {
    #[default]
    Json,
    Xml,
}

impl WorkflowPlanFormat {
    /// The format with this name in configurations. None for another name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "xml" => Some(Self::Xml),
            _ => None,
        }
    }

    /// The format that a client accepts: the one that `Accept` names first. A client that accepts any gets the configured one.
    pub(crate) fn accepted(headers: &HeaderMap, configured: Self) -> Self {
        let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let named = accepted.split(',').find_map(|part| {
            let kind = part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            let is_format = |name: &str| kind == format!("application/{name}") || kind.ends_with(&format!("+{name}"));
            match () {
                () if is_format("json") => Some(Self::Json),
                () if is_format("xml") || kind == "text/xml" => Some(Self::Xml),
                () => None,
            }
        });
        named.unwrap_or(configured)
    }
}

impl PlannedItem {
    fn to_json(&self, id: &str) -> Value {
        json!({
            id: self.id,
            "title": self.title,
            "goal": self.goal,
            "verified_artifacts": object(&self.artifacts),
            "required_variables": object(&self.required),
        })
    }

    fn write_xml(&self, kind: &str, xml: &mut String) {
        let (id, title) = (attribute(&self.id), attribute(&self.title));
        let _ = write!(xml, "<{kind} id=\"{id}\" title=\"{title}\"><goal>{}</goal>", content(&self.goal));
        write_named(xml, "verified_artifacts", "variable", &self.artifacts);
        write_named(xml, "required_variables", "variable", &self.required);
        let _ = writeln!(xml, "</{kind}>");
    }
}

impl PlannedBehavior {
    fn to_json(&self) -> Value {
        json!({
            "behavior_id": self.id,
            "step_id": self.step_id,
            "agent": self.agent,
            "task": self.task,
            "inputs": object(&self.inputs),
            "outputs": object(&self.outputs),
            "acceptance": self.acceptance,
        })
    }

    fn to_xml(&self) -> String {
        let (id, step_id) = (attribute(&self.id), attribute(&self.step_id));
        let mut xml = format!("<behavior id=\"{id}\" step_id=\"{step_id}\">\n");
        write_text(&mut xml, "agent", &self.agent);
        write_text(&mut xml, "task", &self.task);
        write_named(&mut xml, "inputs", "variable", &self.inputs);
        write_named(&mut xml, "outputs", "artifact", &self.outputs);
        xml.push_str("<acceptance>");
        for condition in &self.acceptance {
            let _ = write!(xml, "<criterion>{}</criterion>", content(condition));
        }
        xml.push_str("</acceptance>\n</behavior>\n");
        xml
    }
}

impl WorkflowPlan {
    pub(crate) fn to_json(&self) -> Value {
        let list = |items: &[PlannedItem], id: &str| items.iter().map(|item| item.to_json(id)).collect::<Value>();
        match self {
            Self::Stages { title, focus, stages } => {
                json!({ "title": title, "focus": focus, "stages": list(stages, "stage_id") })
            }
            Self::Steps { focus, goals, steps } => {
                json!({ "focus": focus, "goals": goals, "steps": list(steps, "step_id") })
            }
            Self::Behavior(behavior) => json!({ "behavior": behavior.to_json() }),
        }
    }

    /// One element: `stages`, `steps` or `behavior`.
    pub(crate) fn to_xml(&self) -> String {
        match self {
            Self::Stages { title, focus, stages } => {
                let mut xml = String::from("<stages>\n<remaining>\n");
                stages.iter().for_each(|stage| stage.write_xml("stage", &mut xml));
                xml.push_str("</remaining>\n");
                write_text(&mut xml, "title", title);
                write_text(&mut xml, "focus", focus);
                xml + "</stages>\n"
            }
            Self::Steps { focus, goals, steps } => {
                let mut xml = String::from("<steps>\n");
                steps.iter().for_each(|step| step.write_xml("step", &mut xml));
                write_text(&mut xml, "focus", focus);
                write_text(&mut xml, "goals", goals);
                xml + "</steps>\n"
            }
            Self::Behavior(behavior) => behavior.to_xml(),
        }
    }
}

fn object(named: &[(String, String)]) -> Map<String, Value> {
    named.iter().map(|(name, text)| (name.clone(), Value::String(text.clone()))).collect()
}

fn write_text(xml: &mut String, name: &str, text: &str) {
    let _ = writeln!(xml, "<{name}>{}</{name}>", content(text));
}

fn write_named(xml: &mut String, name: &str, item: &str, named: &[(String, String)]) {
    let _ = write!(xml, "<{name}>");
    for (key, text) in named {
        let _ = write!(xml, "<{item} name=\"{}\">{}</{item}>", attribute(key), content(text));
    }
    let _ = write!(xml, "</{name}>");
}

/// Text between elements. Quotation marks stay: clients escape the entity of one again.
fn content(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars().filter(|c| is_permitted(*c)) {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text in an attribute.
fn attribute(text: &str) -> String {
    content(text).replace('"', "&quot;").replace(['\n', '\t'], " ")
}

/// Whether XML 1.0 permits a character at all.
const fn is_permitted(character: char) -> bool {
    matches!(character, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behavior::plan::PlanLevel;
    use crate::behavior::request::BehaviorRequest;
    use axum::http::HeaderValue;
    use bcc_runtime::effects::behavior_server::xml::read_xml;

    fn request(location: Value) -> BehaviorRequest {
        let body = json!({"observation": {"location": location}, "state": {"variables": {"user_problem": "Count <b> & \"c\""}}});
        BehaviorRequest::read(body.as_object().unwrap().clone()).unwrap()
    }

    #[test]
    fn each_level_is_read_in_the_forms_of_models_and_written_in_both_formats() {
        let at_step = json!({"current": {"stage_id": "s", "step_id": "load"}});
        let mut shown = String::new();
        for (level, location, reply) in [
            (
                PlanLevel::Stages,
                json!({}),
                json!({"title": "T", "focus": "a < b", "stages": [
                    {"stage_id": "read", "title": "Read \"it\"", "goal": "x > 0 & y", "verified_artifacts": {"df": "a table"}, "required_variables": ["raw"]},
                    {"id": "read", "name": "Again", "artifacts": [{"name": "r", "description": "report"}]},
                    {"stage_id": "not an id", "goal": "No title\u{0}"},
                    {"title": " "}, 7, "Only a title",
                ]}),
            ),
            (
                PlanLevel::Steps,
                json!({"current": {"stage_id": "s"}}),
                json!([{"step_id": "load", "title": "Load", "goal": "Loaded"}]),
            ),
            (
                PlanLevel::Behavior,
                at_step.clone(),
                json!({"behavior": {"agent": "analyst", "task": "Load it", "inputs": {"path": "./a.csv"}, "outputs": {"df": "rows"}, "acceptance": ["len(df) > 0"]}}),
            ),
            (PlanLevel::Behavior, at_step, json!({"task": "Flat", "acceptance": "one"})),
        ] {
            let plan = WorkflowPlan::read(level, &reply, &request(location)).unwrap();
            let read = read_xml(plan.to_xml().as_bytes()).unwrap();
            for (name, value) in plan.to_json().as_object().unwrap() {
                // XML has no character for it.
                let value: Value = serde_json::from_str(&value.to_string().replace("\\u0000", "")).unwrap();
                assert_eq!(read[name], value, "{name}");
            }
            shown.push_str(&format!("{}\n{}\n", serde_json::to_string_pretty(&plan.to_json()).unwrap(), plan.to_xml()));
        }
        insta::assert_snapshot!("plans", shown);
    }

    #[test]
    fn a_reply_without_a_plan_is_an_error_and_the_undivided_goal_is_a_plan() {
        for (level, name) in
            [(PlanLevel::Stages, "stages"), (PlanLevel::Steps, "steps"), (PlanLevel::Behavior, "behavior")]
        {
            for reply in [json!({}), json!(7), json!({name: []}), json!({name: {}}), json!({name: [{}]})] {
                assert!(WorkflowPlan::read(level, &reply, &request(json!({}))).is_err(), "{reply}");
            }
            let plan = WorkflowPlan::undivided(level, &request(json!({})), "the goal");
            assert!(plan.to_json().to_string().contains("Count <b>"), "{plan:?}");
            assert!(plan.to_xml().starts_with(&format!("<{name}")) && plan.to_xml().contains("Count &lt;b&gt; &amp;"));
        }
    }

    #[test]
    fn the_format_is_the_one_that_the_client_names_first() {
        for (accept, configured, format) in [
            ("*/*", WorkflowPlanFormat::Json, WorkflowPlanFormat::Json),
            ("*/*", WorkflowPlanFormat::Xml, WorkflowPlanFormat::Xml),
            ("application/json, application/xml", WorkflowPlanFormat::Xml, WorkflowPlanFormat::Json),
            ("text/xml;q=0.9, */*", WorkflowPlanFormat::Json, WorkflowPlanFormat::Xml),
            ("application/problem+xml", WorkflowPlanFormat::Json, WorkflowPlanFormat::Xml),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(WorkflowPlanFormat::accepted(&headers, configured), format, "{accept}");
        }
        assert_eq!(WorkflowPlanFormat::accepted(&HeaderMap::new(), WorkflowPlanFormat::Xml), WorkflowPlanFormat::Xml);
    }
}
