//! What a cell put out, as nbformat 4.5 has it, within bounds.

use serde_json::{Map, Value, json};

use crate::notebook::kernel::message::Received;
use bcc_lang::value::depth::{MOST_LEVELS, deeper_than};

/// So many bytes of outputs are kept of one cell.
pub(crate) const MOST_OUTPUT_BYTES: usize = 1024 * 1024;

/// So many outputs are kept of one cell; streams of one name that follow each other are one.
pub(crate) const MOST_OUTPUTS: usize = 1_000;

/// The most errors of a cell: a cell ends with its first, and code that sends more says nothing new.
const MOST_ERRORS: usize = 10;

/// The most bytes of what stands beside the data of an output.
const MOST_METADATA_BYTES: usize = 16 * 1024;

/// So many bytes of an error are kept, even when there is no room for other outputs any more.
const MOST_ERROR_BYTES: usize = 64 * 1024;

/// The outputs of one cell so far.
#[derive(Debug, Default)]
pub(crate) struct KernelOutputs {
    kept: Vec<Output>,
    left_out: u64,
    clear_first: bool,
    /// How many errors there are; one cell mostly has one.
    errors: usize,
}

#[derive(Debug)]
struct Output {
    value: Map<String, Value>,
    bytes: usize,
    display: Option<String>,
}

impl KernelOutputs {
    /// Takes a message of the iopub channel; those that are no output change nothing.
    pub(crate) fn take(&mut self, message: Received) {
        let Received { kind, content, bytes, .. } = message;
        let Some(Value::Object(mut content)) = content else {
            if matches!(kind.as_str(), "stream" | "display_data" | "execute_result" | "error") {
                self.clear_if_asked();
                self.left_out = self.left_out.saturating_add(bytes);
            }
            if kind == "error" {
                let said = "the error message is too long to be stored";
                self.push(
                    json!({ "output_type": "error", "ename": "Error", "evalue": said, "traceback": [] }),
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

    /// All of them, with a note where something is missing, and how many bytes are.
    pub(crate) fn finish(mut self) -> (Vec<Value>, u64) {
        if self.left_out > 0 {
            let text = format!("[bcc-script left out {} bytes of output]\n", self.left_out);
            self.push(json!({ "output_type": "stream", "name": "stderr", "text": text }), 0, None);
        }
        (self.kept.into_iter().map(|output| Value::Object(output.value)).collect(), self.left_out)
    }

    fn clear(&mut self) {
        // What was left out would be gone now as well.
        *self = Self::default();
    }

    fn clear_if_asked(&mut self) {
        if self.clear_first {
            self.clear();
        }
    }

    fn room(&self) -> usize {
        MOST_OUTPUT_BYTES.saturating_sub(self.kept.iter().map(|output| output.bytes).sum())
    }

    fn push(&mut self, value: Value, bytes: usize, display: Option<String>) {
        if let Value::Object(value) = value {
            self.kept.push(Output { value, bytes, display });
        }
    }

    fn leave_out(&mut self, bytes: usize) {
        self.left_out = self.left_out.saturating_add(bytes as u64);
    }

    fn stream(&mut self, content: &Map<String, Value>) {
        self.clear_if_asked();
        let text = content.get("text").and_then(Value::as_str).unwrap_or_default();
        let name = if content.get("name").and_then(Value::as_str) == Some("stderr") { "stderr" } else { "stdout" };
        let part = text.get(..text.floor_char_boundary(self.room())).unwrap_or_default();
        let is_full = self.kept.len() >= MOST_OUTPUTS;
        let last = self.kept.last_mut().filter(|last| {
            last.value.get("output_type").and_then(Value::as_str) == Some("stream")
                && last.value.get("name").and_then(Value::as_str) == Some(name)
        });
        let taken = match last {
            Some(Output { value, bytes, .. }) => {
                if let Some(Value::String(kept)) = value.get_mut("text") {
                    kept.push_str(part);
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
        self.leave_out(text.len() - taken);
    }

    fn display(&mut self, content: &mut Map<String, Value>, count: Option<Value>) {
        self.clear_if_asked();
        let display = display_id(content);
        let (data, metadata) = bundle(content);
        let (data, bytes, missing) = fitted(data, self.room());
        self.leave_out(missing);
        if data.is_empty() && missing > 0 {
            return;
        }
        if self.kept.len() >= MOST_OUTPUTS {
            return self.leave_out(bytes);
        }
        let value = match count {
            Some(count) => {
                json!({ "output_type": "execute_result", "execution_count": count, "data": data, "metadata": metadata })
            }
            None => json!({ "output_type": "display_data", "data": data, "metadata": metadata }),
        };
        self.push(value, bytes, display);
    }

    /// Changes what is displayed under an id, wherever it is.
    fn update(&mut self, content: &mut Map<String, Value>) {
        let Some(display) = display_id(content) else { return };
        let (data, metadata) = bundle(content);
        for number in 0..self.kept.len() {
            let room = self.room();
            let Some(output) = self.kept.get_mut(number).filter(|output| output.display.as_ref() == Some(&display))
            else {
                continue;
            };
            let (data, bytes, missing) = fitted(data.clone(), room + output.bytes);
            if missing == 0 {
                output.value.insert("data".to_owned(), Value::Object(data));
                output.value.insert("metadata".to_owned(), Value::Object(metadata.clone()));
                output.bytes = bytes;
            } else {
                self.leave_out(missing);
            }
        }
    }

    fn error(&mut self, content: &Map<String, Value>) {
        self.clear_if_asked();
        if self.errors >= MOST_ERRORS {
            return self.leave_out(content.values().map(|value| value.to_string().len()).sum());
        }
        self.errors += 1;
        let text = |name: &str| content.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, said) = (cut(text("ename"), 200), cut(text("evalue"), MOST_ERROR_BYTES / 4));
        self.leave_out(text("ename").len() - name.len() + text("evalue").len() - said.len());
        let lines = content.get("traceback").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut traceback = Vec::new();
        let mut room = MOST_ERROR_BYTES;
        // The last lines say where it happened.
        for line in lines.iter().rev().filter_map(Value::as_str) {
            let part = cut(line, room);
            self.leave_out(line.len() - part.len());
            room -= part.len();
            if !part.is_empty() || line.is_empty() {
                traceback.push(part.to_owned());
            }
        }
        traceback.truncate(MOST_OUTPUTS);
        traceback.reverse();
        // Not counted: what went wrong is shown however much was said before.
        self.push(json!({ "output_type": "error", "ename": name, "evalue": said, "traceback": traceback }), 0, None);
    }
}

fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
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
    // A row that holds them must be read again, and what is beside the data is small or nothing.
    data.retain(|_, value| !deeper_than(value, MOST_LEVELS));
    metadata.retain(|_, value| !deeper_than(value, MOST_LEVELS));
    if metadata.iter().map(|(name, value)| name.len() + value.to_string().len()).sum::<usize>() > MOST_METADATA_BYTES {
        metadata.clear();
    }
    (data, metadata)
}

/// As much of a bundle as there is room for: all of it, else its plain text; how large that is, and how much is missing.
fn fitted(mut data: Map<String, Value>, room: usize) -> (Map<String, Value>, usize, usize) {
    let size = |name: &str, value: &Value| match value {
        Value::String(text) => name.len() + text.len(),
        other => name.len() + other.to_string().len(),
    };
    let all: usize = data.iter().map(|(name, value)| size(name, value)).sum();
    if all <= room {
        return (data, all, 0);
    }
    data.retain(|name, _| name == "text/plain");
    let plain: usize = data.iter().map(|(name, value)| size(name, value)).sum();
    if plain <= room { (data, plain, all - plain) } else { (Map::new(), 0, all) }
}
