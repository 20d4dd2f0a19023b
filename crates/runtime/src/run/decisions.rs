//! Requests outside of the conversation: opened by a turn, answered once by a person or by time (docs/requests.md).

use std::time::Duration;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValues;
use bcc_lang::value::mask::MASK;
use serde_json::Value;

use crate::program::decision::{DecisionKind, DecisionRequest, GivenDecision, RequestKind};
use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::Outcome;
use crate::program::program::Program;
use crate::run::approval_decision::{ApprovalDecision, DecisionError};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{component, id_of, parent};
use crate::run::head::SessionStatus;
use crate::run::request_values::{form_values, schema_values};
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use crate::run::turns::{ActionContext, NextStep};
use bcc_store::contract::Store;
use bcc_store::rows::RequestRow;

/// The reason of the route back that a decision takes.
pub const PUSHED_BACK: &str = "pushed_back";

/// The longest comment on a decision, in bytes.
pub const MAX_COMMENT_BYTES: usize = 64 * 1024;

pub(crate) fn rejected(code: &'static str, message: Message, help: impl Into<Option<Message>>) -> DecisionError {
    DecisionError::Refused { code, message, help: help.into() }
}

impl Session {
    /// The requests for a decision or a time that are open, each with the key of its action, the oldest first.
    fn open_requests(&self) -> impl Iterator<Item = (String, &RequestRow)> {
        let main = self.request.iter().map(|request| (self.frames.leaf(), request));
        let branches = self.branch_requests.iter().map(|(key, request)| (key.clone(), request));
        let mut open: Vec<(String, &RequestRow)> = main.chain(branches).collect();
        // The id has the number of an event.
        open.sort_by_key(|(_, request)| request.id.get(1..).and_then(|number| number.parse::<u64>().ok()));
        open.into_iter()
    }

    /// The requests for a decision or a time that are open, each with its location. Several are open only in branches.
    pub fn requests(&self) -> Vec<(EventLocation, &RequestRow)> {
        self.open_requests().map(|(key, request)| (self.place_of(&key), request)).collect()
    }

    /// The request that the session waits for first, if it waits for a decision or a time: the first decision, else the earliest time.
    pub fn request(&self) -> Option<&RequestRow> {
        let is_decision = |request: &&RequestRow| request.kind == RequestKind::Approval.name();
        let decision = self.open_requests().map(|(_, request)| request).find(is_decision);
        decision.or_else(|| {
            self.open_requests().map(|(_, request)| request).min_by(|one, other| one.due_at.cmp(&other.due_at))
        })
    }

    /// How long it is until an open request is due; `None` if none is open, none is ever due, or time does not pass.
    pub fn time_left(&self) -> Option<Duration> {
        let due = self.open_requests().filter_map(|(_, request)| request.due_at.as_deref());
        due.filter_map(|due| self.services.clock.remaining(due)).min()
    }

    /// Opens a request and waits for it.
    pub(crate) fn request_decision(
        &mut self,
        request: DecisionRequest,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) {
        let DecisionRequest { kind, prompt, schema, decisions, approvers, due_at } = request;
        // An id that no answer of the conversation and no question about an effect has.
        let id = format!("r{}", self.last_seq + 1);
        let names: Vec<&'static str> = decisions.iter().map(|decision| decision.name()).collect();
        let list = |names: Value, is_empty: bool| (!is_empty).then(|| names.to_string());
        // Lists of requests are no part of the conversation.
        let prompt = self.masker.text(&prompt);
        let row = RequestRow {
            id: id.clone(),
            kind: kind.name().to_owned(),
            prompt: prompt.clone(),
            schema: schema.as_ref().map(Value::to_string),
            decisions: list(names.iter().copied().collect(), names.is_empty()),
            approvers: list(approvers.iter().map(String::as_str).collect(), approvers.is_empty()),
            due_at: due_at.clone(),
            ..RequestRow::default()
        };
        let iteration = self.push_backs(&self.frames.leaf()) + 1;
        let opened = Event::RequestOpened {
            request_id: id.clone(),
            kind: kind.name(),
            prompt: prompt.clone(),
            schema,
            decisions: names,
            approvers,
            due_at,
            iteration,
        };
        draft.event(place, opened);
        draft.requests.push(row.clone());
        let (answer_id, request_id) = (id.clone(), Some(id.clone()));
        draft.event(place, Event::Waiting { r#for: kind.name(), prompt, answer_id, request_id });
        if self.frames.focus().is_some() {
            // The other branches run on: the session waits when none of them can.
            let key = self.frames.leaf();
            if let Some(frame) = self.frames.change(&key) {
                frame.request = Some(id);
            }
            self.branch_requests.insert(key, row);
            return;
        }
        self.head.waiting = Some(id);
        self.request = Some(row);
        self.status = match kind {
            RequestKind::Approval => SessionStatus::WaitingApproval,
            RequestKind::Time => SessionStatus::WaitingTime,
        };
    }

    /// Takes a decision about the open request. It is committed, with who made it and why, before anything follows from it.
    ///
    /// # Errors
    /// `Refused` if no such request is open, or the decision, the person or a value is not permitted; otherwise the store failed.
    pub async fn decide(&mut self, decision: ApprovalDecision) -> Result<(), DecisionError> {
        self.decide_at(decision, false).await
    }

    /// The same for a decision that came while its request was open, although its time may be over now.
    ///
    /// # Errors
    /// As [`Session::decide`].
    pub(crate) async fn decide_in_time(&mut self, decision: ApprovalDecision) -> Result<(), DecisionError> {
        self.decide_at(decision, true).await
    }

    async fn decide_at(&mut self, decision: ApprovalDecision, is_in_time: bool) -> Result<(), DecisionError> {
        self.ensure_consistent()?;
        let is_meant = |request: &RequestRow| {
            let is_decision = request.kind == RequestKind::Approval.name();
            is_decision && decision.request.as_ref().is_none_or(|given| *given == request.id)
        };
        let meant = self.decidable(decision.request.as_deref()).await.ok().map(|(key, _)| key);
        let kept = meant.filter(|key| is_in_time || self.waits_beyond_time(key));
        // In another branch, a time may be over that has nothing to do with this decision.
        if self.answer_due(kept.as_deref()).await?.iter().any(is_meant) {
            return Err(late());
        }
        let (key, request) = self.decidable(decision.request.as_deref()).await?;
        let ApprovalDecision { decision, by, comment, values, .. } = decision;
        check_decision(&request, decision)?;
        let by = by.map(|by| by.trim().to_owned()).filter(|by| !by.is_empty());
        if by.as_ref().is_some_and(|by| by.chars().any(char::is_control)) {
            return Err(rejected("not-a-name", Message::word("a name is one line of text"), None));
        }
        check_approver(&request, by.as_deref())?;
        if comment.as_ref().map_or(0, String::len).max(by.as_ref().map_or(0, String::len)) > MAX_COMMENT_BYTES {
            let message = msg!("the comment or the name is longer than {MAX_COMMENT_BYTES} bytes");
            return Err(rejected("decision-too-long", message, None));
        }
        let program = std::sync::Arc::clone(&self.program);
        let action = self.position(&program, &key).map(|position| &position.step.action);
        let values = match action.filter(|action| !action.decisions().is_empty()) {
            Some(approval) => form_values(approval.form(), decision, values)?,
            None => schema_values(&request, decision, values)?,
        };
        let comment = comment.filter(|comment| !comment.trim().is_empty());
        self.answer_request(&key, GivenDecision { decision: Some(decision), by, comment, values }).await?;
        Ok(())
    }

    /// Takes the decisions that have arrived. Returns whether there were any.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn take_arrived(&mut self) -> Result<bool, RunError> {
        let mut any = false;
        // One that names no request may mean the one that is opened next.
        while let Some(arrived) = self.inbox.take(|decision| decision.request.is_some() || self.awaits_decision()) {
            any = true;
            let after = self.last_seq();
            let taken = match self.decide_in_time(arrived.decision).await {
                Ok(()) => Ok(after),
                Err(DecisionError::Run(error)) => return Err(error),
                Err(refused) => Err(refused),
            };
            // Whoever left does not change what was decided.
            let _ = arrived.taken.send(taken);
        }
        Ok(any)
    }

    fn awaits_decision(&self) -> bool {
        self.requests().iter().any(|(_, request)| request.kind == RequestKind::Approval.name())
    }

    /// The open request that is meant, if a person decides about it, with the key of its action.
    async fn decidable(&self, given: Option<&str>) -> Result<(String, RequestRow), DecisionError> {
        let open: Vec<(String, &RequestRow)> =
            self.open_requests().filter(|(_, request)| request.kind == RequestKind::Approval.name()).collect();
        let meant = open.iter().find(|(_, request)| given.is_none_or(|given| given == request.id));
        match meant {
            Some(_) if given.is_none() && open.len() > 1 => {
                let help = msg!("open are {}", Message::names(open.iter().map(|(_, request)| request.id.as_str())));
                let message = msg!("{} decisions are open, so it must be said which one is meant", open.len());
                return Err(rejected("decision-ambiguous", message, help));
            }
            Some((key, request)) => return Ok((key.clone(), (*request).clone())),
            None => {}
        }
        let ids: Vec<&str> = open.iter().map(|(_, request)| request.id.as_str()).collect();
        let help = match ids.as_slice() {
            [] => None,
            [id] => Some(msg!("the open request is `{}`", *id)),
            ids => Some(msg!("open are {}", Message::names(ids))),
        };
        if let Some(given) = given.filter(|given| self.open_requests().any(|(_, request)| request.id == *given)) {
            let message = msg!("the request `{given}` waits for a time, not for a person");
            return Err(rejected("request-unknown", message, help));
        }
        let answered = match given {
            None if !ids.is_empty() => None,
            given => earlier_answer(self.store.as_ref(), &self.id, given).await?,
        };
        Err(match answered {
            Some(answered) => rejected("request-answered", answered, help),
            None => match given {
                Some(given) => {
                    rejected("request-unknown", msg!("session `{}` has no request `{given}`", self.id), help)
                }
                None => rejected(
                    "request-unknown",
                    msg!("session `{}` waits for no decision: its status is `{}`", self.id, self.status.name()),
                    None,
                ),
            },
        })
    }

    /// Answers the open requests whose time has come. Returns whether there were any.
    pub(crate) async fn take_due(&mut self) -> Result<bool, RunError> {
        Ok(!self.answer_due(None).await?.is_empty())
    }

    fn is_due_now(&self, request: &RequestRow) -> bool {
        let due = request.due_at.as_deref().and_then(|due| self.services.clock.remaining(due));
        due == Some(Duration::ZERO)
    }

    /// Refuses a decision about this request that comes too late, without recording that its time is over.
    ///
    /// # Errors
    /// `Refused` if it does.
    pub fn check_in_time(&self, request: &str) -> Result<(), DecisionError> {
        let mut meant = self.open_requests().filter(|(_, open)| open.id == request && self.is_due_now(open));
        if meant.any(|(key, _)| !self.waits_beyond_time(&key)) { Err(late()) } else { Ok(()) }
    }

    /// Whether the time of an action is only one to be warned at.
    fn waits_beyond_time(&self, key: &str) -> bool {
        self.position(&self.program, key).is_some_and(|position| position.step.action.waits_beyond_time())
    }

    /// Answers the open requests whose time has come, without that of the action `kept`, and returns them.
    async fn answer_due(&mut self, kept: Option<&str>) -> Result<Vec<RequestRow>, RunError> {
        let due = self.open_requests().filter(|(key, request)| kept != Some(key.as_str()) && self.is_due_now(request));
        let due: Vec<(String, RequestRow)> = due.map(|(key, request)| (key, request.clone())).collect();
        for (key, _) in &due {
            let given = GivenDecision { decision: None, by: None, comment: None, values: ExactValues::new() };
            self.answer_request(key, given).await?;
        }
        Ok(due.into_iter().map(|(_, request)| request).collect())
    }

    /// Answers an open request as it was answered in the session that is repeated: that of this action, else the one that is open.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn repeat_decision(&mut self, action_id: Option<&str>, given: GivenDecision) -> Result<(), RunError> {
        let keys: Vec<String> = self.open_requests().map(|(key, _)| key).collect();
        let is_meant = |key: &&String| action_id == Some(id_of(component(key)));
        let Some(key) = keys.iter().find(is_meant).or(keys.first()) else { return Ok(()) };
        self.answer_request(key, given).await
    }

    async fn answer_request(&mut self, key: &str, given: GivenDecision) -> Result<(), RunError> {
        let branch = self.enclosing_branch(key);
        let request = match &branch {
            Some(_) => self.branch_requests.remove(key),
            None => self.request.take(),
        };
        let Some(request) = request else {
            let what = Message::word("the request that it waits for is missing");
            return Err(RunError::Unreadable { id: self.id.clone(), what });
        };
        let place = self.place_of(key);
        let mut draft = CommitDraft::default();
        let mut shown = given.values.clone();
        let scopes = self.in_branch(branch.as_deref(), |session| session.scopes.clone());
        for (name, value) in &mut shown {
            if scopes.is_sensitive(name) {
                self.hide(value, &mut draft)
                    .map_err(|error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() })?;
                *value = Value::from(MASK).into();
            }
        }
        let kind = if request.kind == RequestKind::Time.name() { RequestKind::Time } else { RequestKind::Approval };
        let answered = Event::RequestAnswered {
            request_id: request.id.clone(),
            kind: kind.name(),
            decision: given.decision.map(DecisionKind::name),
            by: given.by.clone(),
            comment: given.comment.clone(),
            values: shown,
            iteration: self.push_backs(key) + 1,
        };
        draft.event(&place, answered);
        draft.answered.push(request.id);
        if let Some(frame) = self.frames.change(key) {
            frame.decision = Some(Box::new(given));
            frame.request = None;
        }
        if branch.is_none() {
            self.head.waiting = None;
        }
        self.head.route_hops = 0;
        self.head.recent_routes.clear();
        self.status = SessionStatus::Running;
        self.commit(draft).await
    }

    /// How often the action `key` was pushed back in this visit of its list.
    pub(crate) fn push_backs(&self, key: &str) -> u32 {
        let list = self.frames.get(parent(key));
        list.and_then(|list| list.push_backs.get(id_of(component(key)))).copied().unwrap_or_default()
    }

    /// Goes back from the action of this turn to an earlier one of the same list, whose steps run again.
    pub(crate) fn push_back(
        &mut self,
        program: &Program,
        context: &ActionContext<'_>,
        outcome: Outcome,
        target: String,
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        let list = parent(context.key).to_owned();
        let steps = self.steps_of(program, &list);
        let found = steps.and_then(|steps| steps.iter().position(|step| step.id == target));
        let here = self.frames.get(&list).map(|frame| frame.next);
        let Some(found) = found.filter(|found| here.is_some_and(|here| *found < here)) else {
            return Err(SessionFailure::new(msg!("there is no earlier action `{target}` to go back to")));
        };
        let from = context.place.action_id.clone().unwrap_or_default();
        draft.event(&context.place, Event::Outcome { action_type: context.kind, outcome: Box::new(outcome) });
        let why = Message::word("the approval was pushed back");
        let route = Event::RouteTaken {
            reason: PUSHED_BACK,
            route: format!("goto: {target}"),
            from: from.clone(),
            why,
            table: None,
        };
        draft.event(&context.place, route);
        self.remove_action(context.key);
        if let Some(frame) = self.frames.change(&list) {
            frame.next = found;
            *frame.push_backs.entry(from).or_default() += 1;
        }
        self.settled(draft)
    }
}

fn late() -> DecisionError {
    let help = Message::word("`bcc-script tick` or a resume continues the session");
    rejected("decision-late", Message::word("the time for this decision is over"), help)
}

/// Who answered this request of a session, or the last decision, and when; none if it was not answered.
///
/// # Errors
/// If the store fails.
pub async fn earlier_answer(
    store: &dyn Store,
    session: &str,
    request: Option<&str>,
) -> Result<Option<Message>, RunError> {
    let mut after = 0;
    let mut found = None;
    loop {
        let rows = store.journal_by_kind(session, "request_answered", after, 64).await?;
        let Some(last) = rows.last() else { return Ok(found) };
        after = last.seq;
        for row in &rows {
            let Ok(event) = serde_json::from_str::<Value>(&row.body) else { continue };
            let field = |name: &str| event.get(name).and_then(Value::as_str);
            let id = field("request_id").unwrap_or_default().to_owned();
            if request.is_some_and(|request| request != id) {
                continue;
            }
            if field("kind") == Some(RequestKind::Time.name()) {
                // Nobody decides about the end of a wait, so only who names it means it.
                if request.is_some() {
                    found = Some(msg!("the request `{id}` was a wait, which ended at {}", row.at));
                }
                continue;
            }
            let decision = field("decision").unwrap_or("timed_out").to_owned();
            found = Some(match field("by") {
                Some(by) => msg!("the request `{id}` was answered by {by} at {}: {decision}", row.at),
                None => msg!("the request `{id}` was answered at {}: {decision}", row.at),
            });
        }
    }
}

fn check_decision(request: &RequestRow, decision: DecisionKind) -> Result<(), DecisionError> {
    let permitted = names_in(request.decisions.as_deref()).ok_or_else(|| unreadable_request(request))?;
    if permitted.iter().any(|name| name == decision.name()) {
        return Ok(());
    }
    let message = msg!("the request `{}` cannot be answered with `{}`", request.id, decision.name());
    Err(rejected("decision-not-permitted", message, msg!("permitted: {}", Message::names(&permitted))))
}

fn check_approver(request: &RequestRow, by: Option<&str>) -> Result<(), DecisionError> {
    let approvers = names_in(request.approvers.as_deref()).ok_or_else(|| unreadable_request(request))?;
    if approvers.is_empty() || by.is_some_and(|by| approvers.iter().any(|name| name == by)) {
        return Ok(());
    }
    let message = match by {
        Some(_) => msg!("the request `{}` is decided by others", request.id),
        None => msg!("the request `{}` is decided by certain people only, and no name was given", request.id),
    };
    Err(rejected("not-an-approver", message, msg!("who may decide: {}", Message::names(&approvers))))
}

/// The names in a stored JSON list; empty if there is no list, `None` if it cannot be read.
pub fn names_in(list: Option<&str>) -> Option<Vec<String>> {
    list.map_or_else(|| Some(vec![]), |list| serde_json::from_str(list).ok())
}

/// Not knowing who may decide does not mean that anybody may.
pub(crate) fn unreadable_request(request: &RequestRow) -> DecisionError {
    let help = Message::word("`bcc-script store check` looks for damage; `bcc-script cancel` ends the session");
    rejected("request-unreadable", msg!("the request `{}` cannot be read from the store", request.id), help)
}
