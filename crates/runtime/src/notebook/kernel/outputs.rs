//! The outputs of a cell in the format of nbformat 4.5, within size limits.

use serde_json::{Map, Value, json};

use crate::notebook::export::output::is_base64_type;
use crate::notebook::kernel::limits::OutputLimits;
use crate::notebook::kernel::message::Received;
use bcc_lang::value::depth::{MAX_LEVELS, is_deeper_than};

/// The maximum stored size of the displays of one cell, in bytes: they are in memory until the cell ends.
const MAX_CELL_BYTES: usize = 256 * 1024 * 1024;

/// The maximum number of stored outputs of one cell; consecutive streams with the same name are merged.
pub(crate) const MAX_OUTPUTS: usize = 1_000;

/// The type of the text that stands for displayed data where it cannot be shown.
const PLAIN: &str = "text/plain";

/// The maximum number of types of one display.
const MAX_TYPES: usize = 32;

/// The maximum number of errors of a cell: a cell ends with its first one, and further ones give no new information.
const MAX_ERRORS: usize = 10;

/// The maximum size of the metadata of an output, in bytes.
const MAX_METADATA_BYTES: usize = 16 * 1024;

/// The maximum stored size of an error, in bytes, even if the limit for other outputs is reached.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The outputs of one cell so far.
#[derive(Debug)]
pub(crate) struct KernelOutputs {
    limits: OutputLimits,
    stored: Vec<Output>,
    omitted_bytes: u64,
    /// The omitted bytes also of outputs that were cleared.
    flood_bytes: u64,
    clear_first: bool,
    /// The number of errors; usually at most one.
    errors: usize,
    beyond: LeftOutOutputs,
}

/// The outputs beyond [`MAX_OUTPUTS`].
#[derive(Debug, Default)]
struct LeftOutOutputs {
    count: u64,
    bytes: u64,
    /// The name of the last one if it is a stream: what follows in the same stream is one output with it.
    stream: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Output {
    value: Map<String, Value>,
    /// Its printed or plain text, in bytes.
    text_bytes: usize,
    /// The rest of its data, in bytes.
    display_bytes: usize,
    /// The bytes of a stream that were omitted after it.
    omitted_bytes: u64,
    display: Option<String>,
}

/// The part of a bundle that fits, and the size of the rest.
struct FittingBundle {
    data: Map<String, Value>,
    text_bytes: usize,
    display_bytes: usize,
    omitted_bytes: usize,
}

impl KernelOutputs {
    pub(crate) fn new(limits: OutputLimits) -> Self {
        Self {
            limits,
            stored: vec![],
            omitted_bytes: 0,
            flood_bytes: 0,
            clear_first: false,
            errors: 0,
            beyond: LeftOutOutputs::default(),
        }
    }

    /// The bytes that were omitted of everything that the code wrote.
    pub(crate) const fn flood_bytes(&self) -> u64 {
        self.flood_bytes
    }

    /// Processes a message of the iopub channel; messages that are not outputs change nothing.
    pub(crate) fn take(&mut self, message: Received) {
        let Received { kind, content, bytes, .. } = message;
        let Some(Value::Object(mut content)) = content else {
            if matches!(kind.as_str(), "stream" | "display_data" | "execute_result" | "error") {
                self.clear_if_asked();
                if self.stored.len() >= MAX_OUTPUTS && kind != "error" {
                    return self.leave_out(None, bytes);
                }
                self.omit(bytes);
                let (what, setting) =
                    if kind == "stream" { ("text", "max_text") } else { ("an output", "max_display") };
                self.push_note(OutputLimits::note(what, bytes, setting));
            }
            if kind == "error" {
                let message = "the error message is too long to be stored";
                self.push(
                    json!({ "output_type": "error", "ename": "Error", "evalue": message, "traceback": [] }),
                    Output::default(),
                );
            }
            return;
        };
        match kind.as_str() {
            "stream" => self.stream(&content),
            "display_data" => self.display(&mut content, None),
            "execute_result" => {
                let count = content.get("execution_count").and_then(Value::as_u64);
                self.display(&mut content, Some(Value::from(count)));
            }
            "update_display_data" => self.update(&mut content),
            "error" => self.error(&content),
            "clear_output" if content.get("wait") == Some(&Value::Bool(true)) => self.clear_first = true,
            "clear_output" => self.clear(),
            _ => {}
        }
    }

    /// All outputs, with a note wherever some output was omitted, and the number of omitted bytes.
    pub(crate) fn finish(mut self) -> (Vec<Value>, u64) {
        for output in &mut self.stored {
            if output.omitted_bytes > 0
                && let Some(Value::String(text)) = output.value.get_mut("text")
            {
                let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                let all = text.len() as u64 + output.omitted_bytes;
                *text = format!("{text}{gap}{}\n", OutputLimits::text_note(output.omitted_bytes, all));
            }
        }
        let LeftOutOutputs { count, bytes, .. } = self.beyond;
        if count > 0 {
            self.add_note(&format!(
                "[bcc-script left out outputs, {count} with {bytes} bytes: a cell can have at most {MAX_OUTPUTS} outputs, whatever the settings are]"
            ));
        }
        (self.stored.into_iter().map(|output| Value::Object(output.value)).collect(), self.omitted_bytes)
    }

    fn clear(&mut self) {
        // The omitted output would be cleared as well.
        *self = Self { flood_bytes: self.flood_bytes, ..Self::new(self.limits) };
    }

    fn clear_if_asked(&mut self) {
        if self.clear_first {
            self.clear();
        }
    }

    /// The text that can still be stored, in bytes.
    fn available_text(&self) -> usize {
        let limit = usize::try_from(self.limits.text).unwrap_or(usize::MAX);
        limit.saturating_sub(self.stored.iter().map(|output| output.text_bytes).sum())
    }

    fn available_display(&self) -> usize {
        MAX_CELL_BYTES.saturating_sub(self.stored.iter().map(|output| output.display_bytes).sum())
    }

    fn push(&mut self, value: Value, output: Output) {
        if let Value::Object(value) = value {
            self.stored.push(Output { value, ..output });
        }
    }

    /// Says in place of an output that it was left out.
    fn push_note(&mut self, note: String) {
        if self.stored.len() < MAX_OUTPUTS {
            self.add_note(&note);
        }
    }

    /// Adds a line that says something about the code, whatever the limits are.
    pub(crate) fn add_note(&mut self, note: &str) {
        self.push(json!({ "output_type": "stream", "name": "stderr", "text": format!("{note}\n") }), Output::default());
    }

    fn omit(&mut self, bytes: u64) {
        self.omitted_bytes = self.omitted_bytes.saturating_add(bytes);
        self.flood_bytes = self.flood_bytes.saturating_add(bytes);
    }

    /// Leaves out an output beyond [`MAX_OUTPUTS`], or more of a stream.
    fn leave_out(&mut self, stream: Option<&'static str>, bytes: u64) {
        self.omit(bytes);
        let LeftOutOutputs { count, bytes: all, stream: last } = &mut self.beyond;
        *count += u64::from(stream.is_none() || *last != stream);
        *all = all.saturating_add(bytes);
        *last = stream;
    }

    fn stream(&mut self, content: &Map<String, Value>) {
        self.clear_if_asked();
        let text = content.get("text").and_then(Value::as_str).unwrap_or_default();
        let name = if content.get("name").and_then(Value::as_str) == Some("stderr") { "stderr" } else { "stdout" };
        let part = cut(text, self.available_text());
        let is_full = self.stored.len() >= MAX_OUTPUTS;
        let omitted_bytes = (text.len() - part.len()) as u64;
        let last = self.stored.last_mut().filter(|last| {
            last.value.get("output_type").and_then(Value::as_str) == Some("stream")
                && last.value.get("name").and_then(Value::as_str) == Some(name)
        });
        match last {
            Some(Output { value, text_bytes, omitted_bytes: omitted_after, .. }) => {
                // Nothing follows a gap.
                let is_whole = *omitted_after == 0;
                if let Some(Value::String(existing)) = value.get_mut("text").filter(|_| is_whole) {
                    existing.push_str(part);
                    *text_bytes += part.len();
                    *omitted_after = omitted_bytes;
                    self.omit(omitted_bytes);
                } else {
                    *omitted_after += text.len() as u64;
                    self.omit(text.len() as u64);
                }
            }
            None if text.is_empty() => {}
            None if is_full => self.leave_out(Some(name), text.len() as u64),
            None => {
                let output = Output { text_bytes: part.len(), omitted_bytes, ..Output::default() };
                self.push(json!({ "output_type": "stream", "name": name, "text": part }), output);
                self.omit(omitted_bytes);
            }
        }
    }

    fn display(&mut self, content: &mut Map<String, Value>, count: Option<Value>) {
        self.clear_if_asked();
        let display = display_id(content);
        let (data, metadata) = bundle(content);
        let fitting = self.fit_bundle(data, self.available_text(), self.available_display());
        if self.stored.len() >= MAX_OUTPUTS {
            return self.leave_out(None, (fitting.omitted_bytes + fitting.text_bytes + fitting.display_bytes) as u64);
        }
        self.omit(fitting.omitted_bytes as u64);
        let FittingBundle { data, text_bytes, display_bytes, .. } = fitting;
        let value = match count {
            Some(count) => {
                json!({ "output_type": "execute_result", "execution_count": count, "data": data, "metadata": metadata })
            }
            None => json!({ "output_type": "display_data", "data": data, "metadata": metadata }),
        };
        self.push(value, Output { text_bytes, display_bytes, display, ..Output::default() });
    }

    /// Updates all outputs with this display id.
    fn update(&mut self, content: &mut Map<String, Value>) {
        let Some(display) = display_id(content) else { return };
        let (data, metadata) = bundle(content);
        for number in 0..self.stored.len() {
            let (text, shown) = (self.available_text(), self.available_display());
            let Some(output) = self.stored.get(number).filter(|output| output.display.as_ref() == Some(&display))
            else {
                continue;
            };
            let fitting = self.fit_bundle(data.clone(), text + output.text_bytes, shown + output.display_bytes);
            self.omit(fitting.omitted_bytes as u64);
            if let Some(output) = self.stored.get_mut(number) {
                output.value.insert("data".to_owned(), Value::Object(fitting.data));
                output.value.insert("metadata".to_owned(), Value::Object(metadata.clone()));
                (output.text_bytes, output.display_bytes) = (fitting.text_bytes, fitting.display_bytes);
            }
        }
    }

    /// The data that is within the limits. A note in its plain text says what is not.
    fn fit_bundle(&self, mut data: Map<String, Value>, text_bytes: usize, mut display_bytes: usize) -> FittingBundle {
        let limit = usize::try_from(self.limits.display).unwrap_or(usize::MAX);
        let mut fitting = FittingBundle { data: Map::new(), text_bytes: 0, display_bytes: 0, omitted_bytes: 0 };
        let mut notes = vec![];
        let plain = data.shift_remove(PLAIN);
        for (number, (mime, value)) in data.into_iter().enumerate() {
            let (bytes, stored) = data_bytes(&mime, &value);
            if number >= MAX_TYPES {
                fitting.omitted_bytes += stored;
            } else if bytes <= limit && stored <= display_bytes {
                display_bytes -= stored;
                fitting.display_bytes += stored;
                fitting.data.insert(mime, value);
            } else {
                fitting.omitted_bytes += stored;
                let shown = cut(&mime, 100);
                notes.push(if bytes > limit {
                    OutputLimits::note(shown, bytes as u64, "max_display")
                } else {
                    format!("[bcc-script left out {shown}, {bytes} bytes: a cell can display at most {MAX_CELL_BYTES} bytes]")
                });
            }
        }
        let text = match plain {
            Some(Value::String(text)) => Some(text),
            Some(Value::Array(lines)) => Some(lines.iter().filter_map(Value::as_str).collect()),
            _ => None,
        };
        let mut shown = text.as_deref().map(|text| cut(text, text_bytes).to_owned());
        if let (Some(text), Some(shown)) = (&text, &shown) {
            fitting.text_bytes = shown.len();
            if shown.len() < text.len() {
                fitting.omitted_bytes += text.len() - shown.len();
                notes.push(OutputLimits::text_note((text.len() - shown.len()) as u64, text.len() as u64));
            }
        }
        for note in notes {
            let text = shown.get_or_insert_default();
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&note);
        }
        if let Some(text) = shown {
            fitting.data.insert(PLAIN.to_owned(), Value::String(text));
        }
        fitting
    }

    fn error(&mut self, content: &Map<String, Value>) {
        self.clear_if_asked();
        if self.errors >= MAX_ERRORS {
            return self.omit(content.values().map(|value| value.to_string().len() as u64).sum());
        }
        self.errors += 1;
        let text = |name: &str| content.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, value) = (cut(text("ename"), 200), cut(text("evalue"), MAX_ERROR_BYTES / 4));
        self.omit((text("ename").len() - name.len() + text("evalue").len() - value.len()) as u64);
        let lines = content.get("traceback").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut traceback = Vec::new();
        let mut available_bytes = MAX_ERROR_BYTES;
        // The last lines contain the place of the error.
        for line in lines.iter().rev().filter_map(Value::as_str) {
            let part = cut(line, available_bytes);
            self.omit((line.len() - part.len()) as u64);
            available_bytes -= part.len();
            if !part.is_empty() || line.is_empty() {
                traceback.push(part.to_owned());
            }
        }
        traceback.truncate(MAX_OUTPUTS);
        traceback.reverse();
        // Not counted: an error is shown regardless of the size of other outputs.
        let value = json!({ "output_type": "error", "ename": name, "evalue": value, "traceback": traceback });
        self.push(value, Output::default());
    }
}

fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

fn display_id(content: &Map<String, Value>) -> Option<String> {
    Some(content.get("transient")?.get("display_id")?.as_str()?.to_owned())
}

fn bundle(content: &mut Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let mut take = |name: &str| match content.remove(name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let (mut data, mut metadata) = (take("data"), take("metadata"));
    // Stored values must be readable again, and the metadata of an output should be small.
    data.retain(|_, value| !is_deeper_than(value, MAX_LEVELS));
    metadata.retain(|_, value| !is_deeper_than(value, MAX_LEVELS));
    if metadata.iter().map(|(name, value)| name.len() + value.to_string().len()).sum::<usize>() > MAX_METADATA_BYTES {
        metadata.clear();
    }
    (data, metadata)
}

/// The size of displayed data, and the size in which it is stored. They differ for base64.
fn data_bytes(mime: &str, value: &Value) -> (usize, usize) {
    match value {
        Value::String(text) if is_base64_type(mime) => (text.len() / 4 * 3, text.len()),
        Value::String(text) => (text.len(), text.len()),
        other => {
            let bytes = other.to_string().len();
            (bytes, bytes)
        }
    }
}
