//! Copies the state of an ended session before one of its actions, as the first commit of another session, which repeats it from
//! there (docs/retry.md). The copy contains the journal up to that point.

use std::collections::{BTreeMap, BTreeSet};

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::scopes::{DeclarationMap, Scope};

use crate::notebook::cell::Cell;
use crate::notebook::large_outputs::references;
use crate::program::program::{Program, ProgramStep};
use crate::run::compensation_records::{Compensation, compensations_of, leave_out, newest, undone_places};
use crate::run::error::RunError;
use crate::run::frames::{FrameTarget, Frames, component, id_of, parent, public_path, redacted_key};
use crate::run::head::{Head, SessionStatus};
use crate::run::notebook::state_of;
use crate::run::session::MASKED_VALUES;
use crate::run::take_back::{restored_frames, restored_variables};
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::{
    CellRow, Commit, CounterRow, EarlierState, FrameRow, JournalRow, MessageRow, SessionRow, SharedTexts, VariableRow,
};

/// The number of rows that are read at a time.
const PAGE: usize = 64;

/// Who has set a variable that has the value of its declaration.
pub(crate) const DECLARED: &str = "declare";

/// What the copy is for.
pub struct CopyTarget<'t> {
    /// The id of the new session.
    pub id: &'t str,
    /// The time of the copy.
    pub at: &'t str,
    /// `Running`, or what the session was waiting for.
    pub status: SessionStatus,
    /// The program of the new session, if its script was edited.
    pub edited: Option<&'t Program>,
    /// Whether variables that nobody has set get the values that the edited script declares for them: also those of the user, who is a new
    /// one.
    pub renews_declared: bool,
    /// Whether the copy stands beside the session, which goes on or is as it ended: then that one alone undoes what it did.
    pub is_separate: bool,
    /// The effects that the session has had after the copied state: the copy asks before it has them again ([`Head::earlier_effects`]).
    pub earlier_effects: BTreeMap<String, u64>,
}

/// The state of a session as the first commit left it that contains the event `seq`; `None` if the store does not keep it.
///
/// # Errors
/// The store cannot be read.
pub async fn state_at(store: &dyn Store, row: &SessionRow, seq: u64) -> Result<Option<EarlierState>, RunError> {
    // The last revision is the end of the session, not a state before an action.
    let (mut low, mut high) = (1, row.revision);
    let mut found = None;
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(state) = store.earlier_state(&row.id, middle).await? else { return Ok(None) };
        if state.last_seq >= seq {
            found = Some(state);
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(found)
}

/// The rows of a session that is a copy of another one.
#[derive(Clone, Debug)]
pub struct CopiedRows {
    pub first: Commit,
    /// The large outputs of its notebook.
    pub texts: SharedTexts,
}

/// The first commit of a new session with this earlier state of `row`. Analyses and plans that had not
/// finished are dropped.
///
/// # Errors
/// The store cannot be read; or the edited script has no place for the state.
pub async fn copy_of(
    store: &dyn Store,
    row: &SessionRow,
    earlier: EarlierState,
    target: &CopyTarget<'_>,
) -> Result<CopiedRows, RunError> {
    let unreadable = |what: Message| RunError::Unreadable { id: row.id.clone(), what };
    let now: Head = serde_json::from_str(&row.head).map_err(|error| unreadable(msg!("head: {error}")))?;
    let mut head: Head = serde_json::from_str(&earlier.head).map_err(|error| unreadable(msg!("head: {error}")))?;
    head.monitors.clear();
    head.planning = None;
    head.hidden = now.hidden;
    head.earlier_effects.clone_from(&target.earlier_effects);
    let changes = &earlier.changes;
    let mut frames = restored_frames(store.frames(&row.id).await?, changes);
    let current = store.variables(&row.id).await?;
    // What was masked later stays masked.
    let masked = current.iter().filter(|row| row.scope == MASKED_VALUES).cloned().collect::<Vec<_>>();
    let undone = undone_places(&compensations_of(&current).map_err(unreadable)?);
    let mut variables = restored_variables(current, changes);
    variables.retain(|row| row.scope != MASKED_VALUES);
    variables.extend(masked);
    // What was undone later stays undone: no compensation runs a second time.
    leave_out(&mut variables, |place| target.is_separate || undone.contains(place)).map_err(unreadable)?;
    let mut user_variables = vec![];
    if let Some(program) = target.edited {
        frames = moved_frames(frames, program).map_err(RunError::Variable)?;
        declare(&mut variables, &frames, program, target).map_err(unreadable)?;
        if target.renews_declared {
            let scope = (Scope::Global, String::new());
            add_declared(&mut user_variables, scope, &program.globals, target.at).map_err(unreadable)?;
        }
    }
    let mut counters: BTreeMap<String, u64> =
        store.counters(&row.id).await?.into_iter().map(|row| (row.name, row.count)).collect();
    counters.retain(|name, _| !changes.counters_removed.contains(name));
    counters.extend(changes.counters_put.iter().map(|row| (row.name.clone(), row.count)));
    let mut requests = store.requests(&row.id).await?;
    requests.retain(|request| {
        !changes.requests_removed.contains(&request.id) && !changes.requests_put.iter().any(|put| put.id == request.id)
    });
    requests.extend(changes.requests_put.iter().cloned());
    let cells_put = cells(store, &row.id, changes).await?;
    let libraries = state_of(&variables).map_err(unreadable)?.unwrap_or_default().chart_libraries;
    let texts = large_outputs(&row.id, &cells_put, libraries)?;
    let first = Commit {
        status: target.status.name().to_owned(),
        updated_at: target.at.to_owned(),
        location: earlier.location.clone(),
        answers: earlier.answers,
        messages: messages(store, &row.id, changes, head.messages).await?,
        head: serde_json::to_string(&head).map_err(|error| unreadable(error.to_message()))?,
        frames_put: frames,
        variables_put: variables,
        user_variables_put: user_variables,
        counters_put: counters.into_iter().map(|(name, count)| CounterRow { name, count }).collect(),
        journal: journal(store, &row.id, earlier.last_seq, target.id).await?,
        cells_put,
        requests_put: requests,
        ..Commit::default()
    };
    Ok(CopiedRows { first, texts })
}

/// The paths of the actions that were completed in the earlier state and have been undone since, in the order of their completion: also those
/// whose compensations failed. Without those that a session runs again that goes on with the step `from`, a path.
///
/// # Errors
/// The store cannot be read.
pub async fn undone_since(
    store: &dyn Store,
    row: &SessionRow,
    earlier: &EarlierState,
    from: &str,
) -> Result<Vec<String>, RunError> {
    let unreadable = |what: Message| RunError::Unreadable { id: row.id.clone(), what };
    let current = store.variables(&row.id).await?;
    let undone = undone_places(&compensations_of(&current).map_err(unreadable)?);
    let before = compensations_of(&restored_variables(current, &earlier.changes)).map_err(unreadable)?;
    let frames = restored_frames(store.frames(&row.id).await?, &earlier.changes);
    let frames = Frames::from_rows(&frames).map_err(unreadable)?;
    let start = frames.action_at(from);
    let is_undone = |(place, (_, record)): &(String, (&str, &Compensation))| {
        !record.done && undone.contains(place) && !start.is_some_and(|start| record.runs_again(start, &frames))
    };
    let mut found: Vec<_> = newest(&before).into_iter().filter(is_undone).map(|(_, found)| found).collect();
    found.sort_by_key(|(_, record)| record.order);
    Ok(found.into_iter().map(|(key, _)| public_path(key)).collect())
}

/// The events up to `last`, as those of the session `copy`.
async fn journal(store: &dyn Store, id: &str, last: u64, copy: &str) -> Result<Vec<JournalRow>, RunError> {
    let mut copied = Vec::new();
    let mut after = 0;
    loop {
        let rows = store.journal(id, after, PAGE).await?;
        let Some(newest) = rows.last() else { break };
        after = newest.seq;
        copied.extend(rows.into_iter().take_while(|row| row.seq <= last));
        if after >= last {
            break;
        }
    }
    rename_events(&mut copied, id, copy);
    Ok(copied)
}

/// Makes events of the session `from` those of the session `to`.
pub fn rename_events(events: &mut [JournalRow], from: &str, to: &str) {
    if from == to {
        return;
    }
    let name = |id: &str| format!("\"session_id\":{}", serde_json::Value::from(id));
    let (old, new) = (name(from), name(to));
    for event in events {
        // Texts cannot contain the name of a field, because quotes in them are escaped.
        event.body = event.body.replacen(&old, &new, 1);
    }
}

async fn messages(store: &dyn Store, id: &str, changes: &Commit, count: u64) -> Result<Vec<MessageRow>, RunError> {
    let unchanged = changes.messages_kept.unwrap_or(u64::MAX);
    let mut messages: Vec<MessageRow> = Vec::new();
    let mut after = 0;
    loop {
        let rows = store.messages(id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.number;
        messages.extend(rows.into_iter().filter(|row| row.number <= unchanged));
    }
    messages.extend(changes.messages.iter().cloned());
    messages.retain(|message| message.number <= count);
    Ok(messages)
}

async fn cells(store: &dyn Store, id: &str, changes: &Commit) -> Result<Vec<CellRow>, RunError> {
    let unchanged = changes.cells_kept.unwrap_or(u64::MAX);
    let mut cells: BTreeMap<u64, CellRow> = BTreeMap::new();
    let mut after = 0;
    loop {
        let rows = store.cells(id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.number;
        cells.extend(rows.into_iter().filter(|row| row.number <= unchanged).map(|row| (row.number, row)));
    }
    cells.extend(changes.cells_put.iter().map(|row| (row.number, row.clone())));
    Ok(cells.into_values().collect())
}

/// The texts that these cells of a session and its notebook refer to.
fn large_outputs(id: &str, cells: &[CellRow], libraries: Vec<String>) -> Result<SharedTexts, RunError> {
    let mut hashes: BTreeSet<String> = libraries.into_iter().collect();
    for row in cells {
        let cell: Cell = serde_json::from_str(&row.body)
            .map_err(|_| StoreError::CellUnreadable { id: id.to_owned(), number: row.number })?;
        hashes.extend(references(&cell));
    }
    Ok(SharedTexts { session: id.to_owned(), hashes: hashes.into_iter().collect() })
}

/// The frames with the positions that their parts have in an edited script.
///
/// # Errors
/// A message that names the part that is missing.
fn moved_frames(rows: Vec<FrameRow>, program: &Program) -> Result<Vec<FrameRow>, Message> {
    let mut frames = Frames::from_rows(&rows)?;
    let mut moves: Vec<(String, usize)> = Vec::new();
    for row in &rows {
        let Some(frame) = frames.get(&row.key) else { continue };
        let id = id_of(component(&row.key));
        let above = parent(&row.key);
        let index = match frame.at {
            FrameTarget::Phase => program.phases.iter().position(|phase| phase.id == id),
            FrameTarget::Topic if frame.plans.is_some() => {
                return Err(msg!("a plan has changed the topic `{id}`, so its script cannot be replaced"));
            }
            FrameTarget::Topic => {
                let phase = program.phases.iter().find(|phase| phase.id == id_of(component(above)));
                phase.and_then(|phase| phase.topics.iter().position(|topic| topic.id == id))
            }
            // The actions that undo something are those of the script that did it.
            FrameTarget::Action if frames.get(above).is_some_and(|above| above.at == FrameTarget::Compensation) => {
                continue;
            }
            FrameTarget::Action => match steps_of(&frames, program, above) {
                Some(steps) => steps.iter().position(|step| step.id == id),
                // The only action of an insertion.
                None => Some(0),
            },
            FrameTarget::Session
            | FrameTarget::Block(_)
            | FrameTarget::Skill(_)
            | FrameTarget::Single(_)
            | FrameTarget::Finally
            | FrameTarget::Compensation => continue,
        };
        let place = redacted_key(&row.key);
        moves.push((above.to_owned(), index.ok_or_else(|| msg!("the edited script has no `{place}`"))?));
    }
    for (key, index) in moves {
        if let Some(frame) = frames.change(&key) {
            frame.next = index;
        }
    }
    let (changed, _) = frames.take_changes().map_err(|error| error.to_message())?;
    let mut rows: BTreeMap<String, FrameRow> = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
    rows.extend(changed.into_iter().map(|row| (row.key.clone(), row)));
    Ok(rows.into_values().collect())
}

/// The list of actions that the frame `key` runs; `None` if it is a single inserted action, or not in the program.
fn steps_of<'p>(frames: &Frames, program: &'p Program, key: &str) -> Option<&'p [ProgramStep]> {
    let above = parent(key);
    let topic = |key: &str| {
        let phase = program.phases.iter().find(|phase| phase.id == id_of(component(parent(key))))?;
        phase.topics.iter().find(|topic| topic.id == id_of(component(key)))
    };
    match &frames.get(key)?.at {
        FrameTarget::Topic => Some(&topic(key)?.steps),
        FrameTarget::Finally => Some(&topic(above)?.finally),
        FrameTarget::Skill(id) => Some(&program.skills.get(id)?.steps),
        FrameTarget::Block(block) => {
            let id = id_of(component(above));
            let step = steps_of(frames, program, parent(above))?.iter().find(|step| step.id == id)?;
            step.action.steps(block).map(|steps| steps.as_slice())
        }
        FrameTarget::Session
        | FrameTarget::Phase
        | FrameTarget::Single(_)
        | FrameTarget::Compensation
        | FrameTarget::Action => None,
    }
}

/// Adds the variables of the open scopes that only the edited script declares; if `target` says so, those that nobody has set are as it
/// declares them.
fn declare(
    variables: &mut Vec<VariableRow>,
    frames: &[FrameRow],
    program: &Program,
    target: &CopyTarget<'_>,
) -> Result<(), Message> {
    let positions = Frames::from_rows(frames)?;
    let mut scopes = vec![(Scope::Session, String::new(), &program.declarations)];
    for row in frames {
        let id = |key| id_of(component(key));
        let phase = |key| program.phases.iter().find(|phase| phase.id == id(key));
        match positions.get(&row.key).map(|frame| &frame.at) {
            Some(FrameTarget::Phase) => {
                scopes.extend(phase(&row.key).map(|phase| (Scope::Phase, row.key.clone(), &phase.declarations)));
            }
            Some(FrameTarget::Topic) => {
                let topic = phase(parent(&row.key))
                    .and_then(|phase| phase.topics.iter().find(|topic| topic.id == id(&row.key)));
                scopes.extend(topic.map(|topic| (Scope::Topic, public_path(&row.key), &topic.declarations)));
            }
            _ => {}
        }
    }
    for (scope, path, declarations) in scopes {
        let is_in_scope = |row: &VariableRow| row.scope == scope.name() && row.path == path;
        if target.renews_declared {
            variables.retain(|row| !(is_in_scope(row) && row.source == DECLARED));
        }
        add_declared(variables, (scope, path), declarations, target.at)?;
    }
    Ok(())
}

/// Adds the variables of a scope that are not there yet, with the values that they are declared with.
fn add_declared(
    variables: &mut Vec<VariableRow>,
    (scope, path): (Scope, String),
    declarations: &DeclarationMap,
    at: &str,
) -> Result<(), Message> {
    let is_in_scope = |row: &&VariableRow| row.scope == scope.name() && row.path == path;
    let known: Vec<String> = variables.iter().filter(is_in_scope).map(|row| row.name.clone()).collect();
    for declared in declarations.values().filter(|declared| !declared.value.is_null()) {
        if known.contains(&declared.name) {
            continue;
        }
        variables.push(VariableRow {
            scope: scope.name().to_owned(),
            path: path.clone(),
            name: declared.name.clone(),
            value: serde_json::to_string(&declared.value).map_err(|error| error.to_message())?,
            source: DECLARED.to_owned(),
            round: None,
            at: at.to_owned(),
            sensitive: declared.sensitive,
        });
    }
    Ok(())
}
