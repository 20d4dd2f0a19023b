//! Reads a session from the store as an interview.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::{MASK, Masker};
use bcc_lang::value::scopes::Scope;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::rows::{SessionRow, VariableRow};
use indexmap::IndexMap;
use serde_json::Value;

use crate::data_set::catalog::{CatalogVariable, VariableCatalog, VariablePlace};
use crate::data_set::interview::{ActionVisit, CollectedValue, Interview, InterviewMessage, MessageRole, TopicVisit};
use crate::data_set::participants::ParticipantNames;
use crate::error::EngineError;
use crate::export::{events_of, masker, parse_exact, stored_events, transcript};
use crate::session_variables::mark_sensitive;
use crate::stored_programs::StoredPrograms;
use crate::taken_back::TakenBackEvents;

/// Reads sessions of one script.
pub(crate) struct InterviewReader<'s> {
    pub(crate) store: &'s dyn Store,
    pub(crate) programs: &'s StoredPrograms,
    pub(crate) participants: &'s ParticipantNames<'s>,
    pub(crate) include_sensitive: bool,
}

/// Everything of a session that is read before anything of it counts.
pub(crate) struct StoredInterview {
    variables: Vec<VariableRow>,
    user_variables: Vec<VariableRow>,
    /// Masks nothing if sensitive values are included.
    masker: Masker,
    include_sensitive: bool,
    transcript: Vec<Value>,
    /// Where phases and topics begin, and the variables that are set, in order.
    scope_events: Vec<ExactValue>,
    /// Where actions begin and end.
    action_events: Vec<ExactValue>,
    /// The path of the action whose question was not answered when the session ended or was left.
    open_question: Option<String>,
}

/// The values of the session, and those of the visits of repeated topics, each with the action that set it.
#[derive(Default)]
struct FoundValues {
    session: BTreeMap<usize, (ExactValue, String)>,
    /// The actions that set each variable.
    sources: BTreeMap<usize, BTreeSet<String>>,
    /// How often each phase was entered, up to here.
    phases: BTreeMap<String, u64>,
    visits: IndexMap<(usize, String), BTreeMap<usize, (ExactValue, String)>>,
    /// The variables whose values are stored as sensitive, whatever the script declares.
    sensitive: BTreeSet<usize>,
}

impl InterviewReader<'_> {
    /// The interview that a session is, which is counted in the catalog.
    ///
    /// # Errors
    /// A value cannot be read; nothing is counted then.
    pub(crate) async fn interview(
        &self,
        row: &SessionRow,
        stored: &StoredInterview,
        catalog: &mut VariableCatalog,
    ) -> Result<Interview, EngineError> {
        if !catalog.versions.contains_key(&row.script_sha256) {
            // A session whose script this release cannot read is exported without what the script says about its variables.
            let program = self.programs.get(self.store, &row.manifest).await.ok();
            catalog.add_version(&row.script_sha256, program.as_ref().map(|stored| &*stored.program));
        }
        let found = find_values(row, stored, catalog)?;
        let status = SessionStatus::parse(&row.status);
        let is_final = status.is_some_and(SessionStatus::is_final);
        let mut messages = messages(row, stored, catalog);
        let mut actions = actions(stored, &messages);
        let (values, mut visits) = self.observe(row, found, &stored.masker, catalog);
        let paths = messages.iter_mut().map(|message| &mut message.path);
        let paths = paths.chain(actions.iter_mut().map(|action| &mut action.path));
        for path in paths.chain(visits.iter_mut().map(|visit| &mut visit.path)) {
            *path = stored.masker.text(path);
        }
        for message in &messages {
            catalog.places.insert((message.phase_id.clone(), message.topic_id.clone(), message.action_id.clone()));
        }
        *catalog.statuses.entry(row.status.clone()).or_default() += 1;
        if let Some(version) = catalog.versions.get_mut(&row.script_sha256) {
            version.interviews += 1;
        }
        Ok(Interview {
            id: row.id.clone(),
            script: row.script.clone(),
            script_name: row.script_name.clone(),
            script_sha256: row.script_sha256.clone(),
            participant: self.participants.name(&row.user),
            user: self.include_sensitive.then(|| row.user.clone()),
            status: row.status.clone(),
            started_at: row.started_at.clone(),
            ended_at: is_final.then(|| row.updated_at.clone()),
            updated_at: row.updated_at.clone(),
            answers: row.answers,
            values,
            visits,
            messages,
            actions,
        })
    }

    /// Everything of a session that an interview is made from.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) async fn stored(&self, row: &SessionRow) -> Result<StoredInterview, EngineError> {
        let (store, id) = (self.store, row.id.as_str());
        let variables = store.variables(id).await?;
        let mut user_variables = store.user_variables(&row.user).await?;
        mark_sensitive(store, self.programs, row, &mut user_variables).await;
        let masker = match self.include_sensitive {
            true => Masker::default(),
            false => masker(&variables, &user_variables)?,
        };
        let taken_back = TakenBackEvents::of(events_of(store, id, "taken_back").await?);
        let mut scope_events = Vec::new();
        for kind in ["phase_entered", "topic_entered", "variable_set"] {
            scope_events.extend(taken_back.others(stored_events(store, id, kind).await?));
        }
        let mut action_events = Vec::new();
        for kind in ["action_started", "outcome", "routed"] {
            let events = taken_back.others(stored_events(store, id, kind).await?);
            // Prompts and replies take most of the room, and are not needed.
            action_events.extend(events.into_iter().map(|event| without_texts(&event)));
        }
        let seq = |event: &ExactValue| event.get("seq").and_then(Value::as_u64).unwrap_or_default();
        scope_events.sort_by_key(seq);
        action_events.sort_by_key(seq);
        let transcript = transcript(store, id).await?;
        let open_question = self.open_question(id).await?;
        Ok(StoredInterview {
            variables,
            user_variables,
            masker,
            include_sensitive: self.include_sensitive,
            transcript,
            scope_events,
            action_events,
            open_question,
        })
    }

    /// The path of the action for whose answer the session waited after the last message.
    async fn open_question(&self, id: &str) -> Result<Option<String>, EngineError> {
        let Some(waiting) = self.store.last_by_kind(id, "waiting").await? else { return Ok(None) };
        let message = self.store.last_by_kind(id, "message").await?;
        if message.is_some_and(|message| message.seq > waiting.seq) {
            return Ok(None);
        }
        let waiting = parse_exact(&waiting.body, "event")?;
        let is_for_input = text_at(&waiting, "/for") == "input";
        Ok(is_for_input.then(|| text_at(&waiting, "/location/path").to_owned()))
    }

    /// Counts the values in the catalog, and returns those that are not left out.
    fn observe(
        &self,
        row: &SessionRow,
        found: FoundValues,
        masker: &Masker,
        catalog: &mut VariableCatalog,
    ) -> (Vec<CollectedValue>, Vec<TopicVisit>) {
        for (number, sources) in &found.sources {
            if let Some(variable) = catalog.variable_mut(*number) {
                sources.iter().for_each(|source| variable.set_by(source));
            }
        }
        let version = catalog.versions.get(&row.script_sha256);
        let mut expected: Vec<usize> = version.map(|version| version.variables.clone()).unwrap_or_default();
        expected.extend(found.session.keys());
        expected.extend(found.visits.values().flat_map(BTreeMap::keys));
        expected.sort_unstable();
        expected.dedup();
        let repeated = |number: &usize, catalog: &VariableCatalog| {
            catalog.variable(*number).and_then(|variable| catalog.repeated_topic(variable))
        };
        let once: Vec<usize> = expected.iter().copied().filter(|number| repeated(number, catalog).is_none()).collect();
        let values = self.collected(&once, found.session, masker, catalog);
        let mut visits = Vec::new();
        for ((topic, path), values) in found.visits {
            let numbers = expected.iter().copied().filter(|number| repeated(number, catalog) == Some(topic));
            let numbers: Vec<usize> = numbers.collect();
            visits.push(TopicVisit { topic, path, values: self.collected(&numbers, values, masker, catalog) });
        }
        (values, visits)
    }

    fn collected(
        &self,
        numbers: &[usize],
        mut values: BTreeMap<usize, (ExactValue, String)>,
        masker: &Masker,
        catalog: &mut VariableCatalog,
    ) -> Vec<CollectedValue> {
        let mut collected = Vec::new();
        for number in numbers {
            let Some(variable) = catalog.variable_mut(*number) else { continue };
            variable.cases += 1;
            let Some((mut value, source)) = values.remove(number).filter(|(value, _)| !value.is_null()) else {
                continue;
            };
            variable.filled += 1;
            variable.set_by(&source);
            if variable.sensitive && (!self.include_sensitive || is_masked(&value)) {
                continue;
            }
            if !masker.is_empty() {
                value.change(|value| mask_value(value, masker));
            }
            // A mask would turn a column of dates into texts.
            if value.is_null() || variable.is_date() && is_masked(&value) {
                continue;
            }
            variable.observe(&value);
            collected.push(CollectedValue { variable: *number, json: value.to_string() });
        }
        collected
    }
}

/// Masks sensitive values in a value. Numbers that are sensitive elsewhere become null: a mask would turn a column of numbers into texts.
fn mask_value(value: &mut Value, masker: &Masker) {
    let before = value.clone();
    masker.data(value);
    clear_masked_numbers(value, &before);
}

fn clear_masked_numbers(value: &mut Value, before: &Value) {
    match (value, before) {
        (value @ Value::String(_), Value::Number(_)) => *value = Value::Null,
        (Value::Array(items), Value::Array(before)) => {
            items.iter_mut().zip(before).for_each(|(item, before)| clear_masked_numbers(item, before));
        }
        // Keys may be masked, but they stay in their order.
        (Value::Object(fields), Value::Object(before)) => {
            fields.values_mut().zip(before.values()).for_each(|(field, before)| clear_masked_numbers(field, before));
        }
        _ => {}
    }
}

/// Whether only the mask of a sensitive value is left.
fn is_masked(value: &Value) -> bool {
    value.as_str() == Some(MASK)
}

fn text_at<'e>(event: &'e Value, pointer: &str) -> &'e str {
    event.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An event without its large parts.
fn without_texts(event: &ExactValue) -> ExactValue {
    let kept = ["seq", "at", "type", "name", "location", "completed", "exit_reason", "route", "table", "action_type"];
    let fields = event.as_object().into_iter().flatten();
    let mut small: serde_json::Map<String, Value> = fields
        .filter(|(name, _)| kept.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(branch) = event.pointer("/metadata/branch") {
        small.insert("branch".to_owned(), branch.clone());
    }
    Value::Object(small).into()
}

/// The values at the end: those of the session from its rows, those of phases and topics, which are gone when these end, from the events.
fn find_values(
    row: &SessionRow,
    stored: &StoredInterview,
    catalog: &mut VariableCatalog,
) -> Result<FoundValues, EngineError> {
    let mut found = FoundValues::default();
    for variable in stored.variables.iter().filter(|variable| variable.scope == Scope::Session.name()) {
        let number = catalog.add(&VariablePlace::Session, Scope::Session, &variable.name);
        if let Some(known) = catalog.variable_mut(number) {
            known.sensitive |= variable.sensitive;
        }
        found.session.insert(number, (parse_exact(&variable.value, "variable")?, variable.source.clone()));
    }
    // A later session of the same user may have changed what is stored for the user: then it is not the value of this one. A replay has
    // global variables of its own.
    let own = stored.variables.iter().filter(|variable| variable.scope == Scope::Global.name());
    for variable in stored.user_variables.iter().chain(own) {
        if let Some(number) = catalog.find(&VariablePlace::Session, &variable.name)
            && variable.at <= row.updated_at
            && catalog.variable(number).is_some_and(|known| known.scope == Scope::Global)
        {
            if variable.sensitive {
                found.sensitive.insert(number);
            }
            found.session.insert(number, (parse_exact(&variable.value, "variable")?, variable.source.clone()));
        }
    }
    let rows = RowsOfVisits::new(stored);
    for event in &stored.scope_events {
        found.apply(event, row, (stored, &rows), catalog);
    }
    for number in &found.sensitive {
        catalog.variable_mut(*number).into_iter().for_each(|known| known.sensitive = true);
    }
    Ok(found)
}

/// The rows of variables by scope, name, and the visit of their phase or topic. Those of the user are of no visit.
struct RowsOfVisits<'a>(HashMap<(&'a str, &'a str, &'a str), Vec<&'a VariableRow>>);

impl<'a> RowsOfVisits<'a> {
    fn new(stored: &'a StoredInterview) -> Self {
        let mut rows: HashMap<_, Vec<_>> = HashMap::new();
        for row in stored.variables.iter().chain(&stored.user_variables) {
            let visit = if row.scope == Scope::Global.name() { "" } else { row.path.as_str() };
            rows.entry((row.scope.as_str(), row.name.as_str(), visit)).or_default().push(row);
        }
        Self(rows)
    }

    fn of<'s>(&'s self, scope: &'s str, name: &'s str, visit: &'s str) -> &'s [&'s VariableRow] {
        self.0.get(&(scope, name, visit)).map(Vec::as_slice).unwrap_or_default()
    }
}

impl FoundValues {
    fn apply(
        &mut self,
        event: &ExactValue,
        row: &SessionRow,
        (stored, rows): (&StoredInterview, &RowsOfVisits<'_>),
        catalog: &VariableCatalog,
    ) {
        let Some(version) = catalog.versions.get(&row.script_sha256) else { return };
        let part = |pointer: &str| text_at(event, pointer).to_owned();
        let (phase, topic, path) = (part("/location/phase_id"), part("/location/topic_id"), part("/location/path"));
        let visit = path.split('/').next().unwrap_or_default();
        let (scope, place) = match text_at(event, "/type") {
            "phase_entered" => ("", VariablePlace::Phase(phase)),
            "topic_entered" => ("", VariablePlace::Topic(phase, topic)),
            _ => match text_at(event, "/scope") {
                "phase" => ("phase", VariablePlace::Phase(phase)),
                "topic" => ("topic", VariablePlace::Topic(phase, topic)),
                "global" => ("global", VariablePlace::Session),
                "session" => ("session", VariablePlace::Session),
                _ => return,
            },
        };
        if let ("", VariablePlace::Phase(phase)) = (scope, &place) {
            *self.phases.entry(phase.clone()).or_default() += 1;
        }
        let is_of = |variable: &CatalogVariable| variable.place == place;
        let repeated = match &place {
            VariablePlace::Topic(phase, topic) => catalog.repeated.get_index_of(&(phase.clone(), topic.clone())),
            _ => None,
        };
        let values = match repeated {
            Some(topic) => self.visits.entry((topic, visit.to_owned())).or_default(),
            None => &mut self.session,
        };
        if scope.is_empty() {
            for number in version.variables.iter().filter(|number| catalog.variable(**number).is_some_and(is_of)) {
                match version.initial.get(number) {
                    Some(initial) => values.insert(*number, (initial.clone(), "declare".to_owned())),
                    None => values.remove(number),
                };
            }
            return;
        }
        let name = text_at(event, "/name");
        let inner: Vec<&str> = path.split('/').skip(1).collect();
        let around = inner.split_last().map(|(_, around)| around).unwrap_or_default();
        let is_skill = around.iter().any(|part| part.split('#').next().is_some_and(|id| version.skills.contains(id)));
        let Some(number) = catalog.find(&place, name).filter(|_| !is_skill) else { return };
        self.sources.entry(number).or_default().insert(text_at(event, "/source").to_owned());
        if scope == "session" {
            // Its row has the value.
            return;
        }
        let mut value = event.field("value").unwrap_or_default();
        // Events have the mask only; the rows have the newest value of each visit. That of a user can be from a later session.
        let phase = text_at(event, "/location/phase_id");
        let phase_visit = match self.phases.get(phase) {
            Some(visit) if *visit > 1 => format!("{phase}#{visit}"),
            _ => phase.to_owned(),
        };
        let visit = match scope {
            "topic" => visit,
            "phase" => phase_visit.as_str(),
            _ => "",
        };
        let is_own = |of: &&&VariableRow| scope != Scope::Global.name() || of.at <= row.updated_at;
        let own = rows.of(scope, name, visit).iter().find(is_own);
        if let Some(own) = own {
            if own.sensitive {
                self.sensitive.insert(number);
            }
            // Values that are not sensitive themselves may have the mask in them.
            if is_masked(&value) || (stored.include_sensitive && value.to_string().contains(MASK)) {
                value = ExactValue::parse(&own.value).unwrap_or(value);
            }
        }
        values.insert(number, (value, text_at(event, "/source").to_owned()));
    }
}

fn messages(row: &SessionRow, stored: &StoredInterview, catalog: &VariableCatalog) -> Vec<InterviewMessage> {
    let names = catalog.versions.get(&row.script_sha256).map(|version| &version.names);
    let is_waiting = row.status == SessionStatus::WaitingInput.name();
    let is_user = |message: &Value| text_at(message, "/role") == Speaker::User.name();
    let mut asked: BTreeMap<String, u64> = BTreeMap::new();
    let mut messages = Vec::new();
    for (index, message) in stored.transcript.iter().enumerate() {
        let part = |pointer: &str| text_at(message, pointer).to_owned();
        let path = part("/path");
        let waits = match stored.transcript.get(index + 1) {
            Some(next) => is_user(next) && text_at(next, "/path") == path,
            // Also if the session was cancelled, failed or stopped while it waited.
            None => is_waiting || stored.open_question.as_deref() == Some(&path),
        };
        let role = match (is_user(message), waits) {
            (true, _) => MessageRole::Answer,
            (false, false) => MessageRole::Statement,
            (false, true) => {
                let count = asked.entry(path.clone()).or_default();
                *count += 1;
                if *count == 1 { MessageRole::Question } else { MessageRole::FollowUp }
            }
        };
        let of = |name: &str| Some(name).filter(|name| !name.is_empty()).map(str::to_owned);
        let (phase, topic) = (of(&part("/phase_id")), of(&part("/topic_id")));
        let place = names.map(|names| names.place(phase.as_deref(), topic.as_deref(), &path).join(" › "));
        let speaker = names.map(|names| names.speaker(text_at(message, "/role")).to_owned());
        messages.push(InterviewMessage {
            number: index as u64 + 1,
            at: part("/at"),
            role,
            speaker: speaker.unwrap_or_else(|| part("/role")),
            phase_id: phase.unwrap_or_default(),
            topic_id: topic.unwrap_or_default(),
            action_id: part("/action_id"),
            round: message.get("round").and_then(Value::as_u64).unwrap_or_default(),
            // The element of a list, which a person may have named, is a part of paths and places.
            place: stored.masker.text(&place.unwrap_or_default()),
            text: stored.masker.text(text_at(message, "/text")),
            path,
        });
    }
    messages
}

/// The visits of actions, in the order in which they began.
fn actions(stored: &StoredInterview, messages: &[InterviewMessage]) -> Vec<ActionVisit> {
    let mut visits: IndexMap<String, ActionVisit> = IndexMap::new();
    for event in &stored.action_events {
        let part = |pointer: &str| text_at(event, pointer).to_owned();
        let path = part("/location/path");
        if path.is_empty() || part("/location/action_id").is_empty() {
            continue;
        }
        let visit = visits.entry(path.clone()).or_insert_with(|| ActionVisit {
            path,
            phase_id: part("/location/phase_id"),
            topic_id: part("/location/topic_id"),
            action_id: part("/location/action_id"),
            started_at: part("/at"),
            ..ActionVisit::default()
        });
        match text_at(event, "/type") {
            "action_started" => visit.action_type = part("/name"),
            "outcome" => {
                visit.action_type = part("/action_type");
                visit.branch = event.get("branch").and_then(Value::as_str).map(str::to_owned).or(visit.branch.take());
                let reason = event.get("exit_reason").and_then(Value::as_str).map(str::to_owned);
                visit.exit_reason = reason.or(visit.exit_reason.take());
            }
            _ if event.get("table").is_some_and(Value::is_string) => visit.route = Some(part("/route")),
            _ => {}
        }
    }
    for message in messages {
        let Some(visit) = visits.get_mut(&message.path) else { continue };
        match message.role {
            MessageRole::Question | MessageRole::FollowUp => visit.questions += 1,
            MessageRole::Answer => visit.answers += 1,
            MessageRole::Statement => {}
        }
    }
    visits.into_values().collect()
}
