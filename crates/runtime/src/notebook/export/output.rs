//! Reads outputs of code in the format of nbformat 4.5. Kernels are untrusted: any value is read as one of four outputs.

use serde_json::{Map, Value, json};

/// An output of code.
#[derive(Clone, Debug, PartialEq)]
pub enum CellOutput {
    /// Text on `stdout` or `stderr`.
    Stream { name: String, text: String },
    /// Data: the value of the last line (`execute_result`) or displayed data (`display_data`).
    Data {
        /// `Some` for a result, with the execution count of the kernel.
        result: Option<Option<u64>>,
        /// By MIME type.
        data: Map<String, Value>,
        /// The metadata of the data.
        metadata: Map<String, Value>,
    },
    /// An error with its traceback.
    Error {
        name: String,
        value: String,
        /// Its lines, with terminal colors.
        traceback: Vec<String>,
    },
}

/// An output in the form in which sessions store it: with the fields of nbformat only.
pub fn stored(output: &Value) -> Value {
    match read(output) {
        CellOutput::Stream { name, text } => json!({ "output_type": "stream", "name": name, "text": text }),
        CellOutput::Data { result: Some(count), data, metadata } => {
            json!({ "output_type": "execute_result", "execution_count": count, "data": data, "metadata": metadata })
        }
        CellOutput::Data { result: None, data, metadata } => {
            json!({ "output_type": "display_data", "data": data, "metadata": metadata })
        }
        CellOutput::Error { name, value, traceback } => {
            json!({ "output_type": "error", "ename": name, "evalue": value, "traceback": traceback })
        }
    }
}

/// Reads one output. An unknown output becomes text on `stdout`, so that no output is dropped silently.
pub fn read(output: &Value) -> CellOutput {
    let field = |name: &str| output.get(name).map(text).unwrap_or_default();
    let map = |name: &str| output.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let kind = output.get("output_type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "stream" => {
            let name = if field("name") == "stderr" { "stderr" } else { "stdout" };
            CellOutput::Stream { name: name.to_owned(), text: field("text") }
        }
        "execute_result" | "display_data" | "update_display_data" => {
            let count = output.get("execution_count").and_then(Value::as_u64);
            let data = map("data").into_iter().map(|(mime, value)| match is_json(&mime) {
                true => (mime, value),
                false => (mime, Value::String(text(&value))),
            });
            let result = (kind == "execute_result").then_some(count);
            CellOutput::Data { result, data: data.collect(), metadata: map("metadata") }
        }
        "error" => {
            let lines = output.get("traceback").and_then(Value::as_array);
            let traceback = lines.into_iter().flatten().map(text).collect();
            CellOutput::Error { name: field("ename"), value: field("evalue"), traceback }
        }
        _ => CellOutput::Stream { name: "stdout".to_owned(), text: output.to_string() },
    }
}

/// Joins each text that is a list of lines, so that text across several lines can be found.
pub fn join(output: &mut Value) {
    let joined = |value: &mut Value| {
        if value.as_array().is_some_and(|lines| lines.iter().all(Value::is_string)) {
            *value = Value::String(text(value));
        }
    };
    if let Some(value) = output.get_mut("text") {
        joined(value);
    }
    for (mime, value) in output.get_mut("data").and_then(Value::as_object_mut).into_iter().flatten() {
        if !is_json(mime) {
            joined(value);
        }
    }
}

/// Whether data of this MIME type is JSON, which is not changed (`application/json`, `application/….+json`).
pub fn is_json(mime: &str) -> bool {
    mime.strip_prefix("application/").is_some_and(|rest| rest == "json" || rest.ends_with("+json"))
}

/// Whether data of this MIME type is base64.
pub fn is_base64_type(mime: &str) -> bool {
    let is_media = ["image/", "audio/", "video/"].iter().any(|kind| mime.starts_with(kind)) && mime != "image/svg+xml";
    is_media || matches!(mime, "application/pdf" | "application/octet-stream")
}

/// A text or a list of lines as one text; any other value as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) if lines.iter().all(Value::is_string) => {
            lines.iter().filter_map(Value::as_str).collect::<String>()
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn any_value_is_read_as_an_output() {
        let stream = |text: &str| CellOutput::Stream { name: "stdout".into(), text: text.into() };
        assert_eq!(read(&json!({ "output_type": "stream", "name": "odd", "text": ["a\n", "b"] })), stream("a\nb"));
        assert_eq!(read(&json!({ "output_type": "stream" })), stream(""));
        assert_eq!(read(&json!(7)), stream("7"));
        assert_eq!(read(&json!({ "output_type": "new" })), stream(r#"{"output_type":"new"}"#));
        let result = read(&json!({ "output_type": "execute_result", "execution_count": 3, "metadata": [],
            "data": { "text/plain": ["1", "2"], "application/x+json": ["a"], "text/odd": { "a": 1 } } }));
        let CellOutput::Data { result, data, metadata } = result else { panic!("{result:?}") };
        assert_eq!((result, metadata.len()), (Some(Some(3)), 0));
        let expected = json!({ "text/plain": "12", "application/x+json": ["a"], "text/odd": "{\"a\":1}" });
        assert_eq!(Value::Object(data), expected);
        let error = read(&json!({ "output_type": "error", "traceback": ["a", null] }));
        assert_eq!(
            error,
            CellOutput::Error { name: "".into(), value: "".into(), traceback: vec!["a".into(), "".into()] }
        );
    }

    #[test]
    fn the_lines_of_an_output_are_joined() {
        let mut output = json!({ "output_type": "display_data", "data": { "text/plain": ["se", "cret"], "application/json": ["a", "b"] } });
        join(&mut output);
        assert_eq!(output["data"], json!({ "text/plain": "secret", "application/json": ["a", "b"] }));
        let mut stream = json!({ "output_type": "stream", "text": ["se\n", "cret"] });
        join(&mut stream);
        assert_eq!(stream["text"], "se\ncret");
    }
}
