//! `approval`: waits until somebody decides.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::Fields;
use bcc_lang::script::time::time;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::template::text::Text;
use bcc_lang::value::instant::later;
use serde_json::{Map, Value, json};

use crate::actions::conversation::outputs::{read_form, value_to_write};
use crate::program::action::Action;
use crate::program::decision::{DecisionKind, DecisionRequest, GivenDecision, NOT_APPROVED, RequestKind};
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::output::OutputVariable;
use crate::program::turn::{APPROVAL, Turn};
use bcc_lang::value::exact::{ExactValue, ExactValues};

pub(crate) struct ApprovalKind;

/// The longest time that a decision may take: ten years.
const MAX_TIMEOUT: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

struct Approval {
    prompt: Text,
    approvers: Vec<Text>,
    form: Vec<OutputVariable>,
    decisions: Vec<DecisionKind>,
    rewind_to: Option<String>,
    timeout: Option<Duration>,
    on_timeout: OnTimeout,
}

/// What happens when there is no decision in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnTimeout {
    Approve,
    Reject,
    Wait,
}

impl Kind for ApprovalKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "approval",
            schema: include_str!("../../../../schemas/actions/approval.json"),
            page: include_str!("../../../../docs/actions/approval.md"),
            exits: &["approved", "rejected", "timed_out"],
        }
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn may_speak(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let prompt = fields.required_content("prompt").and_then(|field| checker.text(&field));
        let approvers = fields.texts("approvers").iter().filter_map(|field| checker.text(field)).collect();
        let form = read_form(fields, checker);
        let rewind_to = fields.name("rewind_to");
        if let Some(target) = &rewind_to {
            checker.rewind(target);
        }
        let decisions = decisions(fields, rewind_to.is_some());
        let timeout = time(fields, "timeout", MAX_TIMEOUT);
        let on_timeout = on_timeout(fields);
        checker.describe(ActionProperties {
            max_rounds: 1,
            outputs: form.as_ref().map_or(0, Vec::len),
            ..ActionProperties::default()
        });
        let rewind_to = rewind_to.map(|target| target.value);
        Some(Box::new(Approval {
            prompt: prompt?,
            approvers,
            form: form?,
            decisions: decisions?,
            rewind_to,
            timeout,
            on_timeout,
        }))
    }
}

fn on_timeout(fields: &Fields<'_>) -> OnTimeout {
    let written = fields.choice("on_timeout", &["approve", "reject", "wait"]);
    if let (Some(entry), None) = (fields.entry("on_timeout"), fields.take("timeout")) {
        let message = "`on_timeout` has no effect without `timeout`";
        let diagnostic = Diagnostic::error("missing-key", message, fields.file(), entry.key.span);
        fields
            .findings()
            .report(diagnostic.with_help("add `timeout:`, for example `timeout: 2h`, or remove `on_timeout`"));
    }
    match written {
        Some("approve") => OnTimeout::Approve,
        Some("wait") => OnTimeout::Wait,
        _ => OnTimeout::Reject,
    }
}

/// The permitted decisions: those that are written, else to approve, to reject, and to push back if there is an action to go back to.
fn decisions(fields: &Fields<'_>, rewinds: bool) -> Option<Vec<DecisionKind>> {
    let Some(items) = fields.list("decisions") else {
        let usual =
            DecisionKind::OF_APPROVALS.into_iter().filter(|decision| rewinds || *decision != DecisionKind::PushBack);
        return Some(usual.collect());
    };
    let mut found = Vec::new();
    let mut is_valid = true;
    let mut report = |rule, message: Message, span, help: &'static str| {
        is_valid = false;
        fields.findings().report(Diagnostic::error(rule, message, fields.file(), span).with_help(help));
    };
    for item in items {
        let text = item.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
        match DecisionKind::OF_APPROVALS.into_iter().find(|decision| decision.name() == text) {
            Some(decision) => found.push(decision),
            None => report(
                "not-a-choice",
                msg!("`decisions` must list `approve`, `reject` or `push_back`, but this is {}", item.describe()),
                item.span,
                "write, for example, `decisions: [approve, reject]`",
            ),
        }
    }
    let named: BTreeSet<&str> = found.iter().map(|decision| decision.name()).collect();
    let list = fields.take("decisions").map_or(fields.span(), |node| node.span);
    if named.len() < found.len() {
        report("not-a-choice", Message::word("a decision is listed twice"), list, "remove one of the two");
    }
    if found.contains(&DecisionKind::PushBack) != rewinds {
        let (message, help) = if rewinds {
            (
                "`rewind_to` has no effect, because `push_back` is not among the decisions",
                "add `push_back` to `decisions`, or remove `rewind_to`",
            )
        } else {
            (
                "`push_back` needs `rewind_to`: the earlier action where the session goes on",
                "add `rewind_to:` with the id of an earlier action of the same list",
            )
        };
        report("missing-key", Message::word(message), list, help);
    }
    if found.len() == items.len() && !found.contains(&DecisionKind::Approve) {
        report(
            "missing-key",
            Message::word("nobody can approve: `approve` is not among the decisions"),
            list,
            "add `approve`",
        );
    }
    is_valid.then_some(found)
}

impl Approval {
    fn request(&self, turn: &Turn<'_>, timeout: Option<Duration>) -> Result<Flow, ActionError> {
        let names = turn.names(1);
        let prompt = turn.text(&self.prompt, &names)?;
        let mut approvers = Vec::new();
        for approver in &self.approvers {
            let name = turn.text(approver, &names)?.trim().to_owned();
            // A name that renders as nothing would otherwise let everybody decide.
            if name.is_empty() {
                return Err(ActionError::failed("approver-empty", Message::word("a name in `approvers` is empty")));
            }
            approvers.push(name);
        }
        let now = turn.services.clock.at(turn.last_seq + 1);
        let due_at = timeout.and_then(|timeout| later(&now, timeout));
        let schema = (!self.form.is_empty()).then(|| form_schema(&self.form));
        let decisions = self.decisions.clone();
        let kind = RequestKind::Approval;
        Ok(Flow::Request(Box::new(DecisionRequest { kind, prompt, schema, decisions, approvers, due_at })))
    }

    /// Ends the action with what was decided. Prompts and conditions find it under `approval`.
    fn decided(
        &self,
        turn: &Turn<'_>,
        given: &GivenDecision,
        reason: Option<ExitReason>,
    ) -> Result<Outcome, ActionError> {
        let iteration = turn.push_backs + 1;
        let decision = given.decision.map_or("timed_out", DecisionKind::name);
        let action = turn.place.action_id.as_deref().unwrap_or_default();
        let mut extracted_variables = ExactValues::new();
        for field in &self.form {
            let Some(value) = given.values.get(&field.get) else { continue };
            let Some(value) = value_to_write(turn, field, value.clone()) else { continue };
            extracted_variables.insert(field.get.clone(), turn.set(&field.get, value, field.scope)?);
        }
        let record = json!({ "action": action, "iteration": iteration, "decision": decision, "by": given.by, "comment": given.comment });
        turn.set(APPROVAL, ExactValue::from(record), None)?;
        let mut metadata = Map::new();
        metadata.insert("decision".into(), decision.into());
        metadata.insert("by".into(), json!(given.by));
        metadata.insert("comment".into(), json!(given.comment));
        metadata.insert("iteration".into(), iteration.into());
        Ok(Outcome {
            success: true,
            completed: true,
            exit_reason: reason,
            extracted_variables,
            metadata,
            ..Outcome::default()
        })
    }
}

/// The JSON Schema of the values of a form.
fn form_schema(form: &[OutputVariable]) -> Value {
    let property = |field: &OutputVariable| {
        let mut schema = field.declared.map_or_else(|| json!({}), |declared| declared.json_schema());
        if let Some(schema) = schema.as_object_mut() {
            if !field.choices.is_empty() {
                schema.insert("enum".into(), field.choices.clone().into());
            }
            if let Some(define) = &field.define {
                schema.insert("description".into(), define.as_str().into());
            }
        }
        (field.get.clone(), schema)
    };
    let required: Vec<&str> = form.iter().filter(|field| field.required).map(|field| field.get.as_str()).collect();
    let properties: Map<String, Value> = form.iter().map(property).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

#[async_trait]
impl Action for Approval {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        // After another error, the session would go on as if somebody had approved.
        self.take_turn(turn).map_err(|error| match error {
            ActionError::Failed { message, help, .. } => ActionError::Failed { code: NOT_APPROVED, message, help },
            other => other,
        })
    }

    fn form(&self) -> &[OutputVariable] {
        &self.form
    }

    fn decisions(&self) -> &[DecisionKind] {
        &self.decisions
    }

    fn waits_beyond_time(&self) -> bool {
        matches!(self.on_timeout, OnTimeout::Wait)
    }

    fn rewind_to(&self) -> Option<&str> {
        self.rewind_to.as_deref()
    }
}

impl Approval {
    fn take_turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        let Some(given) = turn.decision else { return self.request(turn, self.timeout) };
        let reason = match (given.decision, self.on_timeout) {
            (Some(DecisionKind::Approve), _) | (None, OnTimeout::Approve) => ExitReason::Approved,
            // No request of an approval permits the decisions about calls of tools.
            (Some(DecisionKind::Reject | DecisionKind::Edit | DecisionKind::Answer), _) => ExitReason::Rejected,
            (Some(DecisionKind::PushBack), _) => {
                let Some(target) = self.rewind_to.clone() else {
                    return Err(ActionError::failed(
                        "rewind-missing",
                        Message::word("there is no action to go back to"),
                    ));
                };
                return Ok(Flow::Rewind(Box::new(self.decided(turn, given, None)?), target));
            }
            (None, OnTimeout::Reject) => ExitReason::TimedOut,
            (None, OnTimeout::Wait) => {
                turn.warn(
                    "approval-overdue",
                    Message::word("nobody decided in time; the session goes on waiting"),
                    None,
                );
                return self.request(turn, None);
            }
        };
        Ok(Flow::done(self.decided(turn, given, Some(reason))?))
    }
}
