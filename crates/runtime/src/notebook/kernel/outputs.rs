//! The outputs of a cell in the format of nbformat 4.5, within size limits.

use serde_json::{Map, Value, json};

use crate::notebook::kernel::message::Received;
use bcc_lang::value::depth::{MAX_LEVELS, is_deeper_than};

/// The maximum stored size of the outputs of one cell, in bytes.
pub(crate) const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The maximum number of stored outputs of one cell; consecutive streams with the same name are merged.
pub(crate) const MAX_OUTPUTS: usize = 1_000;

/// The maximum number of errors of a cell: a cell ends with its first one, and further ones give no new information.
const MAX_ERRORS: usize = 10;

/// The maximum size of the metadata of an output, in bytes.
const MAX_METADATA_BYTES: usize = 16 * 1024;

/// The maximum stored size of an error, in bytes, even if the limit for other outputs is reached.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The outputs of one cell so far.
#[derive(Debug, Default)]
pub(crate) struct KernelOutputs {
    stored: Vec<Output>,
    omitted_bytes: u64,
    clear_first: bool,
    /// The number of errors; usually at most one.
    errors: usize,
}

#[derive(Debug)]
struct Output {
    value: Map<String, Value>,
    bytes: usize,
    display: Option<String>,
}

impl KernelOutputs {
    /// Processes a message of the iopub channel; messages that are not outputs change nothing.
    pub(crate) fn take(&mut self, message: Received) {
        let Received { kind, content, bytes, .. } = message;
        let Some(Value::Object(mut content)) = content else {
            if matches!(kind.as_str(), "stream" | "display_data" | "execute_result" | "error") {
                self.clear_if_asked();
                self.omitted_bytes = self.omitted_bytes.saturating_add(bytes);
            }
            if kind == "error" {
                let message = "the error message is too long to be stored";
                self.push(
                    json!({ "output_type": "error", "ename": "Error", "evalue": message, "traceback": [] }),
                    0,
                    None,
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

    /// All outputs, with a note if some output was omitted, and the number of omitted bytes.
    pub(crate) fn finish(mut self) -> (Vec<Value>, u64) {
        if self.omitted_bytes > 0 {
            let text = format!("[bcc-script left out {} bytes of output]\n", self.omitted_bytes);
            self.push(json!({ "output_type": "stream", "name": "stderr", "text": text }), 0, None);
        }
        (self.stored.into_iter().map(|output| Value::Object(output.value)).collect(), self.omitted_bytes)
    }

    fn clear(&mut self) {
        // The omitted output would be cleared as well.
        *self = Self::default();
    }

    fn clear_if_asked(&mut self) {
        if self.clear_first {
            self.clear();
        }
    }

    fn available_bytes(&self) -> usize {
        MAX_OUTPUT_BYTES.saturating_sub(self.stored.iter().map(|output| output.bytes).sum())
    }

    fn push(&mut self, value: Value, bytes: usize, display: Option<String>) {
        if let Value::Object(value) = value {
            self.stored.push(Output { value, bytes, display });
        }
    }

    fn omit(&mut self, bytes: usize) {
        self.omitted_bytes = self.omitted_bytes.saturating_add(bytes as u64);
    }

    fn stream(&mut self, content: &Map<String, Value>) {
        self.clear_if_asked();
        let text = content.get("text").and_then(Value::as_str).unwrap_or_default();
        let name = if content.get("name").and_then(Value::as_str) == Some("stderr") { "stderr" } else { "stdout" };
        let part = text.get(..text.floor_char_boundary(self.available_bytes())).unwrap_or_default();
        let is_full = self.stored.len() >= MAX_OUTPUTS;
        let last = self.stored.last_mut().filter(|last| {
            last.value.get("output_type").and_then(Value::as_str) == Some("stream")
                && last.value.get("name").and_then(Value::as_str) == Some(name)
        });
        let stored_bytes = match last {
            Some(Output { value, bytes, .. }) => {
                if let Some(Value::String(existing)) = value.get_mut("text") {
                    existing.push_str(part);
                }
                *bytes += part.len();
                part.len()
            }
            None if is_full || part.is_empty() => 0,
            None => {
                self.push(json!({ "output_type": "stream", "name": name, "text": part }), part.len(), None);
                part.len()
            }
        };
        self.omit(text.len() - stored_bytes);
    }

    fn display(&mut self, content: &mut Map<String, Value>, count: Option<Value>) {
        self.clear_if_asked();
        let display = display_id(content);
        let (data, metadata) = bundle(content);
        let (data, bytes, missing) = fit_bundle(data, self.available_bytes());
        self.omit(missing);
        if data.is_empty() && missing > 0 {
            return;
        }
        if self.stored.len() >= MAX_OUTPUTS {
            return self.omit(bytes);
        }
        let value = match count {
            Some(count) => {
                json!({ "output_type": "execute_result", "execution_count": count, "data": data, "metadata": metadata })
            }
            None => json!({ "output_type": "display_data", "data": data, "metadata": metadata }),
        };
        self.push(value, bytes, display);
    }

    /// Updates all outputs with this display id.
    fn update(&mut self, content: &mut Map<String, Value>) {
        let Some(display) = display_id(content) else { return };
        let (data, metadata) = bundle(content);
        for number in 0..self.stored.len() {
            let available_bytes = self.available_bytes();
            let Some(output) = self.stored.get_mut(number).filter(|output| output.display.as_ref() == Some(&display))
            else {
                continue;
            };
            let (data, bytes, missing) = fit_bundle(data.clone(), available_bytes + output.bytes);
            if missing == 0 {
                output.value.insert("data".to_owned(), Value::Object(data));
                output.value.insert("metadata".to_owned(), Value::Object(metadata.clone()));
                output.bytes = bytes;
            } else {
                self.omit(missing);
            }
        }
    }

    fn error(&mut self, content: &Map<String, Value>) {
        self.clear_if_asked();
        if self.errors >= MAX_ERRORS {
            return self.omit(content.values().map(|value| value.to_string().len()).sum());
        }
        self.errors += 1;
        let text = |name: &str| content.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, value) = (cut(text("ename"), 200), cut(text("evalue"), MAX_ERROR_BYTES / 4));
        self.omit(text("ename").len() - name.len() + text("evalue").len() - value.len());
        let lines = content.get("traceback").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut traceback = Vec::new();
        let mut available_bytes = MAX_ERROR_BYTES;
        // The last lines contain the place of the error.
        for line in lines.iter().rev().filter_map(Value::as_str) {
            let part = cut(line, available_bytes);
            self.omit(line.len() - part.len());
            available_bytes -= part.len();
            if !part.is_empty() || line.is_empty() {
                traceback.push(part.to_owned());
            }
        }
        traceback.truncate(MAX_OUTPUTS);
        traceback.reverse();
        // Not counted: an error is shown regardless of the size of other outputs.
        self.push(json!({ "output_type": "error", "ename": name, "evalue": value, "traceback": traceback }), 0, None);
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

/// The part of a bundle that fits: all of it, else its plain text; also its size and the size of the omitted part.
fn fit_bundle(mut data: Map<String, Value>, available_bytes: usize) -> (Map<String, Value>, usize, usize) {
    let size = |name: &str, value: &Value| match value {
        Value::String(text) => name.len() + text.len(),
        other => name.len() + other.to_string().len(),
    };
    let total_bytes: usize = data.iter().map(|(name, value)| size(name, value)).sum();
    if total_bytes <= available_bytes {
        return (data, total_bytes, 0);
    }
    data.retain(|name, _| name == "text/plain");
    let plain_bytes: usize = data.iter().map(|(name, value)| size(name, value)).sum();
    if plain_bytes <= available_bytes {
        (data, plain_bytes, total_bytes - plain_bytes)
    } else {
        (Map::new(), 0, total_bytes)
    }
}
