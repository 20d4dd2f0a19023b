//! `--record FILE`: records the model calls of a session, as JSON lines in a file that only its owner can read.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::error::EngineError;
use crate::export::events_of;
use crate::files::read_bounded;
use crate::files::write::replace;
use crate::project::absolute;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::{MASK, Masker};
use bcc_llm::providers::replay::recording::{FORMAT_VERSION, HEADER_KEY, TAKEN_BACK_KEY};
use bcc_llm::reply::extract::object;
use bcc_runtime::program::event_masking::mask_path;
use bcc_runtime::program::recorder::{Recorded, RecordedRange, Recorder};
use bcc_store::contract::Store;
use bcc_store::rows::SessionRow;

/// The size limit of a recording that is continued or replayed, in bytes.
pub(crate) const MAX_RECORDING_BYTES: u64 = 256 * 1024 * 1024;

/// Fields whose values control the engine. They are not masked, because they contain no input of people.
const CONTROL_FIELDS: [&str; 7] =
    ["EXIT", "progress_suggestion", "action", "intervention_level", "intervention_reason", "issue_type", "risk_type"];

/// The number of journal rows that are read at a time.
const PAGE: usize = 64;

#[derive(Debug)]
pub(crate) struct FileRecorder {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of masked texts when the file was last written.
    masked: usize,
    /// The length of the file before the last lines were appended.
    length_before: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Header<'a> {
    pub session_id: &'a str,
    pub script: &'a str,
    pub script_sha256: &'a str,
    pub scheme: Option<&'a str>,
    pub model: &'a str,
}

impl FileRecorder {
    /// Creates a file for a session that is about to start.
    ///
    /// # Errors
    /// When the file exists and is not empty, or cannot be created.
    pub(crate) fn create(path: &Path) -> Result<Self, EngineError> {
        let path = absolute(path);
        let shown = path.display();
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if std::fs::metadata(&path).map_or(true, |found| !found.is_file() || found.len() > 0) {
                    return Err(EngineError::usage(msg!("{shown} already exists and would be overwritten"))
                        .with_help("a new session must be recorded in a new file: choose another name"));
                }
                std::fs::set_permissions(&path, Permissions::from_mode(0o600))
                    .map_err(|error| unwritable(&path, &error))?;
            }
            Err(error) => return Err(unwritable(&path, &error)),
        }
        // Resolved, because the file is replaced later, and a link to it must stay.
        let path = path.canonicalize().map_err(|error| unwritable(&path, &error))?;
        Ok(Self { path, state: Mutex::default() })
    }

    /// Writes the first line of a new recording.
    pub(crate) fn write_header(&self, header: &Header<'_>) -> Result<(), EngineError> {
        std::fs::write(&self.path, header.line()).map_err(|error| unwritable(&self.path, &error))
    }

    /// Removes the file of a session that was not started.
    pub(crate) fn discard(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Continues the recording of a session that is resumed, or starts one in the middle of the session. Removes the lines of turns
    /// that were not committed. Returns a notice for the person.
    ///
    /// # Errors
    /// When the file is not a recording of this session, or cannot be read or written.
    pub(crate) async fn resume(
        path: &Path,
        header: &Header<'_>,
        row: &SessionRow,
        store: &dyn Store,
    ) -> Result<(Self, Option<Message>), EngineError> {
        let calls = calls(store, &row.id).await?;
        if !std::fs::metadata(path).is_ok_and(|found| found.len() > 0) {
            let recorder = Self::create(path)?;
            recorder.write_header(header)?;
            let notice = (!calls.is_empty()).then(|| {
                msg!(
                    "{path} starts in the middle of the session: it cannot be replayed from the beginning",
                    path = path.display()
                )
            });
            return Ok((recorder, notice));
        }
        let text = read(path)?;
        let not_a_recording = || {
            EngineError::usage(msg!("{} is not a recording of session `{}`", path.display(), row.id))
                .with_help("choose another file")
        };
        let mut lines = text.lines();
        let first: Value =
            lines.next().and_then(|first| serde_json::from_str(first).ok()).ok_or_else(not_a_recording)?;
        let field = |name: &str| first.get(name).and_then(Value::as_str);
        let same =
            (field("session_id"), field("script_sha256")) == (Some(header.session_id), Some(header.script_sha256));
        if first.get(HEADER_KEY).is_none() || !same {
            return Err(not_a_recording());
        }
        let mut retained = vec![first.to_string()];
        let mut recorded = 0;
        for line in lines {
            // The last line may be incomplete.
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            let place = value.get("seq").and_then(Value::as_u64).zip(value.get("at").and_then(Value::as_str));
            if place.is_some_and(|(seq, at)| calls.get(&seq).is_some_and(|committed| committed == at)) {
                retained.push(line.to_owned());
                recorded += 1;
            }
        }
        // The person may have taken an answer back while recording was off.
        for event in events_of(store, &row.id, "taken_back").await? {
            let number = |name: &str| event.get(name).and_then(Value::as_u64);
            if let (Some(from_seq), Some(to_seq)) = (number("from_seq"), number("to_seq")) {
                retained.push(range_line(RecordedRange { from_seq, to_seq }).to_string());
            }
        }
        let path = path.canonicalize().map_err(|error| unwritable(path, &error))?;
        let contents = retained.join("\n") + "\n";
        if contents != text {
            replace(&path, contents.as_bytes()).map_err(|error| unwritable(&path, &error))?;
        }
        // A file that cannot be written is reported now, not in the middle of the conversation.
        OpenOptions::new().append(true).open(&path).map_err(|error| unwritable(&path, &error))?;
        let missing = calls.len().saturating_sub(recorded);
        let notice = (missing > 0).then(|| {
            msg!("{path} is missing {missing} calls that were made while recording was off", path = path.display())
        });
        Ok((Self { path, state: Mutex::default() }, notice))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Masks the existing lines again, after values were added to the masker.
    fn mask_again(&self, masker: &Masker) -> io::Result<()> {
        let text = std::fs::read_to_string(&self.path)?;
        let mut masked = String::with_capacity(text.len());
        for (number, line) in text.lines().enumerate() {
            match serde_json::from_str::<Value>(line) {
                Ok(mut value) if number > 0 => {
                    mask(&mut value, masker);
                    masked.push_str(&value.to_string());
                }
                _ => masked.push_str(line),
            }
            masked.push('\n');
        }
        check_size(masked.len() as u64)?;
        if masked == text { Ok(()) } else { replace(&self.path, masked.as_bytes()) }
    }

    fn append(
        &self,
        calls: &[Recorded],
        taken_back: Option<RecordedRange>,
        masker: &Masker,
        state: &mut State,
    ) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        state.length_before = file.metadata()?.len();
        let mut text = String::new();
        for call in calls {
            let mut value = line(call);
            if !masker.is_empty() {
                mask(&mut value, masker);
            }
            text.push_str(&value.to_string());
            text.push('\n');
        }
        if let Some(range) = taken_back {
            text.push_str(&range_line(range).to_string());
            text.push('\n');
        }
        check_size(state.length_before.saturating_add(text.len() as u64))?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        if written.is_err() {
            // An incomplete line would corrupt the next one.
            let _ = file.set_len(state.length_before);
        }
        written
    }
}

impl Recorder for FileRecorder {
    fn record(&self, calls: &[Recorded], taken_back: Option<RecordedRange>, masker: &Masker) -> Result<(), Message> {
        let mut state = self.state();
        let message =
            |error: io::Error| msg!("the recording {path} cannot be written: {error}", path = self.path.display());
        if state.masked != masker.count() {
            self.mask_again(masker).map_err(message)?;
            state.masked = masker.count();
        }
        if calls.is_empty() && taken_back.is_none() {
            state.length_before = u64::MAX;
            return Ok(());
        }
        self.append(calls, taken_back, masker, &mut state).map_err(message)
    }

    fn take_back(&self) {
        let state = self.state();
        if state.length_before != u64::MAX {
            let _ = OpenOptions::new().write(true).open(&self.path).and_then(|file| file.set_len(state.length_before));
        }
    }
}

impl Header<'_> {
    fn line(&self) -> String {
        let Self { session_id, script, script_sha256, scheme, model } = self;
        let version = env!("CARGO_PKG_VERSION");
        let header = json!({
            HEADER_KEY: FORMAT_VERSION, "version": version, "session_id": session_id, "script": script, "script_sha256": script_sha256,
            "scheme": scheme, "model": model,
        });
        format!("{header}\n")
    }
}

/// What was taken back as a line: the exchanges with these numbers no longer count.
fn range_line(range: RecordedRange) -> Value {
    let RecordedRange { from_seq, to_seq } = range;
    json!({ TAKEN_BACK_KEY: { "from_seq": from_seq, "to_seq": to_seq } })
}

/// One exchange as a line.
fn line(recorded: &Recorded) -> Value {
    let Recorded { seq, at, call, .. } = recorded;
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
    put("purpose", json!(call.purpose));
    if let Some(exchange) = &call.exchange {
        put("action_id", json!(exchange.action_id));
        put("path", json!(exchange.path));
        put("round", json!(exchange.round));
        put("call", json!(exchange.call));
        put("messages", json!(exchange.messages));
        let mask = unused_mask(exchange.messages.iter().map(|message| message.content.as_str()));
        if mask != MASK {
            put("mask", json!(mask));
        }
        if !exchange.hidden.is_empty() {
            put("hidden", json!(exchange.hidden));
        }
        match &exchange.text {
            Some(text) => put("text", json!(text)),
            None => put("error", json!(exchange.error)),
        };
        if exchange.used_earlier_reply {
            put("went_on", json!(true));
        }
        put("repair", json!(exchange.policy.repair));
        put("reask", json!(exchange.policy.reask));
    }
    put("model", json!(call.model));
    put("tokens_in", json!(call.tokens_in));
    put("tokens_out", json!(call.tokens_out));
    put("ms", json!(call.ms));
    put("first_token_ms", json!(call.first_token_ms));
    put("attempts", json!(call.attempts));
    put("cut_off", json!(call.cut_off));
    if let Some(reason) = &call.finish_reason {
        put("finish_reason", json!(reason));
    }
    if call.refused {
        put("refusal", json!(true));
    }
    put("seq", json!(seq));
    put("at", json!(at));
    put("call_id", json!(call.call_id));
    Value::Object(line)
}

/// Masks sensitive values in a line: in the path, the messages, the reply and the error.
fn mask(line: &mut Value, masker: &Masker) {
    line.get_mut("path").into_iter().for_each(|path| mask_path(path, masker));
    let mask = line.get("mask").and_then(Value::as_str).unwrap_or(MASK).to_owned();
    for message in line.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::String(content)) = message.get_mut("content") {
            *content = masker.text_with_mask(content, &mask);
        }
    }
    let hidden = line.get("hidden").and_then(Value::as_array).into_iter().flatten();
    let hidden: Vec<String> = hidden.filter_map(Value::as_str).map(str::to_owned).collect();
    let excluded: Vec<&str> = CONTROL_FIELDS.into_iter().chain(hidden.iter().map(String::as_str)).collect();
    if let Some(error) = line.get_mut("error") {
        masker.value(error, &[]);
    }
    if let Some(Value::String(text)) = line.get_mut("text") {
        *text = masked_reply(text, masker, &excluded);
    }
}

/// A raw reply with masked values. It can still be parsed if it could be before: values under the keys `excluded` stay, except for keys
/// inside them, and so do the keys of the object itself, which are those of the script and the engine.
fn masked_reply(text: &str, masker: &Masker, excluded: &[&str]) -> String {
    let Ok((object, digits)) = object(text, &[]) else { return masker.text(text) };
    let received = ExactValue::new(Value::Object(object), digits);
    let mut value = received.clone();
    masker.exact(&mut value, excluded);
    value.change(|value| {
        value.as_object_mut().into_iter().flatten().for_each(|(_, field)| mask_keys(field, masker, excluded));
    });
    // Sensitive values may also be in the text around the object.
    let outside_object = serde_json::from_str::<Value>(text).is_err() && masker.text(text) != text;
    if value == received && !outside_object { text.to_owned() } else { value.to_string() }
}

/// Masks sensitive values in all keys inside a value, except those in `excluded`.
fn mask_keys(value: &mut Value, masker: &Masker, excluded: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| mask_keys(item, masker, excluded)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| mask_keys(field, masker, excluded));
            masker.keys(fields, excluded);
        }
        _ => {}
    }
}

/// A mask for sensitive values that occurs in none of these texts.
fn unused_mask<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> String {
    let mut mask = MASK.to_owned();
    while texts.clone().any(|text| text.contains(&mask)) {
        mask = format!("<{mask}>");
    }
    mask
}

/// Reads a recording.
pub fn read(path: &Path) -> Result<String, EngineError> {
    let shown = path.display();
    let bytes = read_bounded(path, MAX_RECORDING_BYTES)
        .map_err(|error| EngineError::usage(msg!("the recording {shown} cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_RECORDING_BYTES {
        return Err(EngineError::usage(msg!("the recording {shown} is larger than {MAX_RECORDING_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| EngineError::usage(msg!("the recording {shown} is not UTF-8 text")))
}

/// The time of each model call of a session, by the number of its event.
async fn calls(store: &dyn Store, id: &str) -> Result<BTreeMap<u64, String>, EngineError> {
    let mut calls = BTreeMap::new();
    let mut after = 0;
    loop {
        let rows = store.journal_by_kind(id, "model_call", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(calls) };
        after = last.seq;
        calls.extend(rows.into_iter().map(|row| (row.seq, row.at)));
    }
}

/// Rejects a size that could not be read again.
fn check_size(bytes: u64) -> io::Result<()> {
    if bytes <= MAX_RECORDING_BYTES {
        return Ok(());
    }
    let message = format!(
        "it would be larger than {MAX_RECORDING_BYTES} bytes and could not be replayed; resume the session with another file"
    );
    Err(io::Error::other(message))
}

fn unwritable(path: &Path, error: &io::Error) -> EngineError {
    EngineError::failed(msg!("the recording {path} cannot be written: {error}", path = path.display()))
        .with_help("choose a file in a writable folder, on a disk with enough free space")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_runtime::program::event::ModelCall;
    use bcc_runtime::program::location::EventLocation;
    use bcc_runtime::program::recorder::RecordedExchange;
    use std::sync::Arc;

    #[test]
    fn a_masked_reply_is_parsed_as_before() {
        let masker = Masker::new(&[json!("YES").into(), json!("小林").into(), json!(4711).into()]);
        for (text, own, masked) in [
            (r#"{"content":"小林 YES","EXIT":"YES"}"#, "EXIT", r#"{"content":"*** ***","EXIT":"YES"}"#),
            (r#"小林: {"EXIT":"YES","n":4711}"#, "EXIT", r#"{"EXIT":"YES","n":"***"}"#),
            (r#"{"EXIT":"NO", "x": 1}"#, "EXIT", r#"{"EXIT":"NO", "x": 1}"#),
            (r#"{"ready":"YES"}"#, "ready", r#"{"ready":"YES"}"#),
            ("小林 YES", "EXIT", "*** ***"),
            (
                r#"{"EXIT":"NO","小林":{"小林":[{"电话 4711":1}]}}"#,
                "EXIT",
                r#"{"EXIT":"NO","小林":{"***":[{"电话 ***":1}]}}"#,
            ),
            (r#"{"profile":{"小林":0,"name":"***"}}"#, "profile", r#"{"profile":{"***":0,"name":"***"}}"#),
        ] {
            assert_eq!(masked_reply(text, &masker, &[own]), masked, "{text}");
        }
    }

    #[test]
    fn a_recording_that_would_be_too_large_to_read_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        let recorder = FileRecorder::create(&path).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(MAX_RECORDING_BYTES - 10).unwrap();
        let call = ModelCall { exchange: Some(Arc::new(RecordedExchange::default())), ..ModelCall::default() };
        let call =
            Recorded { seq: 1, at: String::new(), place: Arc::new(EventLocation::default()), call: Box::new(call) };
        let error = recorder.record(&[call], None, &Masker::default()).unwrap_err();
        assert!(error.to_string().contains("bytes") && error.to_string().contains("another file"), "{error}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), MAX_RECORDING_BYTES - 10);
    }
}
