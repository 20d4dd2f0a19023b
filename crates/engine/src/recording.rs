//! `--record FILE`: what a session says to models, as JSON lines in a file that only its owner may read.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::error::EngineError;
use crate::files::read_bounded;
use crate::project::absolute;
use bcc_lang::value::mask::{MASK, Masker};
use bcc_llm::providers::replay::recording::MARK;
use bcc_llm::reply::extract::object;
use bcc_runtime::program::recorder::{Recorded, Recorder};
use bcc_store::contract::Store;
use bcc_store::rows::SessionRow;

/// The form of the lines.
const FORM: u64 = 1;

/// The largest recording that is gone on with or replayed, in bytes.
pub const MOST_RECORDING_BYTES: u64 = 256 * 1024 * 1024;

/// Fields by whose values the engine goes: words of its own, which no person says there.
const READ_FIELDS: [&str; 7] =
    ["EXIT", "progress_suggestion", "action", "intervention_level", "intervention_reason", "issue_type", "risk_type"];

/// How many rows of a journal are read at a time.
const PAGE: usize = 64;

#[derive(Debug)]
pub struct FileRecorder {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many texts were masked when what stands in the file was written.
    masked: usize,
    /// How long the file was before the last lines.
    before: u64,
}

#[derive(Clone, Debug)]
pub struct Header<'a> {
    pub session_id: &'a str,
    pub script: &'a str,
    pub script_sha256: &'a str,
    pub scheme: Option<&'a str>,
    pub model: &'a str,
}

impl FileRecorder {
    /// Makes a new file for a session that is about to begin.
    ///
    /// # Errors
    /// When there is such a file already that is not empty, or it cannot be made.
    pub fn create(path: &Path) -> Result<Self, EngineError> {
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
        // Where it really lies: what replaces it must not replace a link to it.
        let path = path.canonicalize().map_err(|error| unwritable(&path, &error))?;
        Ok(Self { path, state: Mutex::default() })
    }

    /// Writes the first line of a new recording.
    pub fn begin(&self, header: &Header<'_>) -> Result<(), EngineError> {
        std::fs::write(&self.path, header.line()).map_err(|error| unwritable(&self.path, &error))
    }

    /// Removes the file of a session that did not begin.
    pub fn give_up(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Goes on with the recording of a session that is resumed, or begins one in its middle. What was written of turns that
    /// were never committed is left out. Gives what a person should know about it.
    ///
    /// # Errors
    /// When the file is no recording of this session, or cannot be read or written.
    pub async fn go_on(
        path: &Path,
        header: &Header<'_>,
        row: &SessionRow,
        archive: &dyn Store,
    ) -> Result<(Self, Option<Message>), EngineError> {
        let calls = calls(archive, &row.id).await?;
        if !std::fs::metadata(path).is_ok_and(|found| found.len() > 0) {
            let recorder = Self::create(path)?;
            recorder.begin(header)?;
            let notice = (!calls.is_empty()).then(|| {
                msg!(
                    "{path} starts in the middle of the session: it cannot be replayed from the beginning",
                    path = path.display()
                )
            });
            return Ok((recorder, notice));
        }
        let text = read(path)?;
        let no_recording = || {
            EngineError::usage(msg!("{} is not a recording of session `{}`", path.display(), row.id))
                .with_help("choose another file")
        };
        let mut lines = text.lines();
        let first: Value = lines.next().and_then(|first| serde_json::from_str(first).ok()).ok_or_else(no_recording)?;
        let told = |name: &str| first.get(name).and_then(Value::as_str);
        let same = (told("session_id"), told("script_sha256")) == (Some(header.session_id), Some(header.script_sha256));
        if first.get(MARK).is_none() || !same {
            return Err(no_recording());
        }
        let mut kept = vec![first.to_string()];
        let mut recorded = 0;
        for line in lines {
            // The last line may be half written.
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            let place = value.get("seq").and_then(Value::as_u64).zip(value.get("at").and_then(Value::as_str));
            if place.is_some_and(|(seq, at)| calls.get(&seq).is_some_and(|committed| committed == at)) {
                kept.push(line.to_owned());
                recorded += 1;
            }
        }
        let path = path.canonicalize().map_err(|error| unwritable(path, &error))?;
        let whole = kept.join("\n") + "\n";
        if whole != text {
            replace(&path, whole.as_bytes()).map_err(|error| unwritable(&path, &error))?;
        }
        // That it can be written is found out now, not in the middle of the conversation.
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

    /// Masks what was written before the masker knew what it knows now.
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
        bounded(masked.len() as u64)?;
        if masked == text { Ok(()) } else { replace(&self.path, masked.as_bytes()) }
    }

    fn append(&self, calls: &[Recorded], masker: &Masker, state: &mut State) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        state.before = file.metadata()?.len();
        let mut text = String::new();
        for call in calls {
            let mut value = line(call);
            if !masker.is_empty() {
                mask(&mut value, masker);
            }
            text.push_str(&value.to_string());
            text.push('\n');
        }
        bounded(state.before.saturating_add(text.len() as u64))?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        if written.is_err() {
            // Half a line would be in the way of the next.
            let _ = file.set_len(state.before);
        }
        written
    }
}

impl Recorder for FileRecorder {
    fn record(&self, calls: &[Recorded], masker: &Masker) -> Result<(), Message> {
        let mut state = self.state();
        let told =
            |error: io::Error| msg!("the recording {path} cannot be written: {error}", path = self.path.display());
        if state.masked != masker.count() {
            self.mask_again(masker).map_err(told)?;
            state.masked = masker.count();
        }
        if calls.is_empty() {
            state.before = u64::MAX;
            return Ok(());
        }
        self.append(calls, masker, &mut state).map_err(told)
    }

    fn take_back(&self) {
        let state = self.state();
        if state.before != u64::MAX {
            let _ = OpenOptions::new().write(true).open(&self.path).and_then(|file| file.set_len(state.before));
        }
    }
}

impl Header<'_> {
    fn line(&self) -> String {
        let Self { session_id, script, script_sha256, scheme, model } = self;
        let version = env!("CARGO_PKG_VERSION");
        let header = json!({
            MARK: FORM, "version": version, "session_id": session_id, "script": script, "script_sha256": script_sha256,
            "scheme": scheme, "model": model,
        });
        format!("{header}\n")
    }
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
        let mark = unused_mark(exchange.messages.iter().map(|message| message.content.as_str()));
        if mark != MASK {
            put("mask", json!(mark));
        }
        if !exchange.hidden.is_empty() {
            put("hidden", json!(exchange.hidden));
        }
        match &exchange.text {
            Some(text) => put("text", json!(text)),
            None => put("error", json!(exchange.fault)),
        };
        if exchange.went_on {
            put("went_on", json!(true));
        }
        put("repair", json!(exchange.manners.repair));
        put("reask", json!(exchange.manners.reask));
    }
    put("model", json!(call.model));
    put("tokens_in", json!(call.tokens_in));
    put("tokens_out", json!(call.tokens_out));
    put("ms", json!(call.ms));
    put("first_token_ms", json!(call.first_token_ms));
    put("attempts", json!(call.attempts));
    put("cut_off", json!(call.cut_off));
    put("seq", json!(seq));
    put("at", json!(at));
    put("call_id", json!(call.call_id));
    Value::Object(line)
}

/// Takes sensitive values out of a line: what was sent, what came, and why nothing did.
fn mask(line: &mut Value, masker: &Masker) {
    let mark = line.get("mask").and_then(Value::as_str).unwrap_or(MASK).to_owned();
    for message in line.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::String(content)) = message.get_mut("content") {
            *content = masker.text_under(content, &mark);
        }
    }
    let hidden = line.get("hidden").and_then(Value::as_array).into_iter().flatten();
    let hidden: Vec<String> = hidden.filter_map(Value::as_str).map(str::to_owned).collect();
    let own: Vec<&str> = READ_FIELDS.into_iter().chain(hidden.iter().map(String::as_str)).collect();
    if let Some(error) = line.get_mut("error") {
        masker.value(error, &[]);
    }
    if let Some(Value::String(text)) = line.get_mut("text") {
        *text = masked_reply(text, masker, &own);
    }
}

/// A raw reply without sensitive values, which can still be read where it could: what stands under the keys `own` stays.
fn masked_reply(text: &str, masker: &Masker, own: &[&str]) -> String {
    let Ok(object) = object(text) else { return masker.text(text) };
    let came = Value::Object(object);
    let mut value = came.clone();
    masker.value(&mut value, own);
    // Around the object, or as a key of it, a value can be said as well.
    let said_beside = serde_json::from_str::<Value>(text).is_err() && masker.text(text) != text;
    if value == came && !said_beside { text.to_owned() } else { value.to_string() }
}

/// A mark for sensitive values that none of these texts holds by itself.
fn unused_mark<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> String {
    let mut mark = MASK.to_owned();
    while texts.clone().any(|text| text.contains(&mark)) {
        mark = format!("<{mark}>");
    }
    mark
}

/// A recording as text.
pub fn read(path: &Path) -> Result<String, EngineError> {
    let shown = path.display();
    let bytes = read_bounded(path, MOST_RECORDING_BYTES)
        .map_err(|error| EngineError::usage(msg!("the recording {shown} cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_RECORDING_BYTES {
        return Err(EngineError::usage(msg!("the recording {shown} is larger than {MOST_RECORDING_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| EngineError::usage(msg!("the recording {shown} is not UTF-8 text")))
}

/// When each call of a session was, by the number of its event.
async fn calls(archive: &dyn Store, id: &str) -> Result<BTreeMap<u64, String>, EngineError> {
    let mut calls = BTreeMap::new();
    let mut after = 0;
    loop {
        let rows = archive.journal_of(id, "model_call", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(calls) };
        after = last.seq;
        calls.extend(rows.into_iter().map(|row| (row.seq, row.at)));
    }
}

/// Refuses what could not be read again.
fn bounded(bytes: u64) -> io::Result<()> {
    if bytes <= MOST_RECORDING_BYTES {
        return Ok(());
    }
    let why = format!(
        "it would be larger than {MOST_RECORDING_BYTES} bytes and could not be replayed; resume the session with another file"
    );
    Err(io::Error::other(why))
}

/// Puts `bytes` in the place of a file, all at once, under its own permissions.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let permissions = std::fs::metadata(path)?.permissions();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.set_permissions(permissions)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
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
    fn a_masked_reply_is_still_read_as_it_was() {
        let masker = Masker::new([&json!("YES"), &json!("小林"), &json!(4711)]);
        for (text, own, masked) in [
            (r#"{"content":"小林 YES","EXIT":"YES"}"#, "EXIT", r#"{"content":"*** ***","EXIT":"YES"}"#),
            (r#"小林: {"EXIT":"YES","n":4711}"#, "EXIT", r#"{"EXIT":"YES","n":"***"}"#),
            (r#"{"EXIT":"NO", "x": 1}"#, "EXIT", r#"{"EXIT":"NO", "x": 1}"#),
            (r#"{"ready":"YES"}"#, "ready", r#"{"ready":"YES"}"#),
            ("小林 YES", "EXIT", "*** ***"),
        ] {
            assert_eq!(masked_reply(text, &masker, &[own]), masked, "{text}");
        }
    }

    #[test]
    fn a_recording_that_could_not_be_read_again_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        let recorder = FileRecorder::create(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(MOST_RECORDING_BYTES - 10).unwrap();
        let call = ModelCall { exchange: Some(Arc::new(RecordedExchange::default())), ..ModelCall::default() };
        let call =
            Recorded { seq: 1, at: String::new(), place: Arc::new(EventLocation::default()), call: Box::new(call) };
        let told = recorder.record(&[call], &Masker::default()).unwrap_err();
        assert!(told.to_string().contains("bytes") && told.to_string().contains("another file"), "{told}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), MOST_RECORDING_BYTES - 10);
    }
}
