//! The outputs of a cell as notebook clients read them, from those of nbformat.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// One output of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ClientOutput {
    /// `text`, `html`, `image` or `error`.
    r#type: &'static str,
    /// The text, the HTML, the image as a `data:` URL, or the traceback.
    content: String,
    /// Of an error: its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    ename: Option<String>,
    /// Of an error: what it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    evalue: Option<String>,
    /// Of an error: its traceback, line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceback: Option<Vec<String>>,
}

/// The kinds of images, the first of which that an output has is sent.
const IMAGES: [&str; 3] = ["image/png", "image/jpeg", "image/gif"];

fn output(r#type: &'static str, content: String) -> ClientOutput {
    ClientOutput { r#type, content, ename: None, evalue: None, traceback: None }
}

/// A text.
pub(crate) fn text_output(text: &str) -> ClientOutput {
    output("text", text.to_owned())
}

/// The outputs of a cell. Never empty: clients run a cell again that seems to have given nothing.
pub(crate) fn outputs_of(outputs: &[Value]) -> Vec<ClientOutput> {
    let found: Vec<ClientOutput> = outputs.iter().filter_map(output_of).collect();
    if found.is_empty() { vec![text_output("")] } else { found }
}

fn output_of(sent: &Value) -> Option<ClientOutput> {
    let text = |name: &str| joined(sent.get(name)?);
    match sent.get("output_type")?.as_str()? {
        "stream" => Some(output("text", text("text")?)),
        "error" => {
            let lines = sent.get("traceback").and_then(Value::as_array).into_iter().flatten();
            let traceback: Vec<String> = lines.filter_map(Value::as_str).map(str::to_owned).collect();
            let (ename, evalue) = (text("ename").unwrap_or_default(), text("evalue").unwrap_or_default());
            let content = if traceback.is_empty() { format!("{ename}: {evalue}") } else { traceback.join("\n") };
            Some(ClientOutput {
                r#type: "error",
                content,
                ename: Some(ename),
                evalue: Some(evalue),
                traceback: Some(traceback),
            })
        }
        _ => {
            let data = sent.get("data")?;
            let of_kind = |kind: &str| joined(data.get(kind)?);
            if let Some(html) = of_kind("text/html") {
                return Some(output("html", html));
            }
            let image = IMAGES.iter().find_map(|kind| Some((kind, of_kind(kind)?)));
            if let Some((kind, base64)) = image {
                return Some(output("image", format!("data:{kind};base64,{}", base64.replace('\n', ""))));
            }
            Some(output("text", of_kind("text/plain")?))
        }
    }
}

/// A text, which nbformat may split into lines.
fn joined(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_output_has_the_form_that_clients_read() {
        for (sent, expected) in [
            (json!([]), json!([{"type": "text", "content": ""}])),
            (
                json!([{"output_type": "stream", "name": "stdout", "text": "a\n"}]),
                json!([{"type": "text", "content": "a\n"}]),
            ),
            (
                json!([{"output_type": "execute_result", "data": {"text/plain": ["1", "2"]}}]),
                json!([{"type": "text", "content": "12"}]),
            ),
            (
                json!([{"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": "aGk=\n"}}]),
                json!([{"type": "image", "content": "data:image/png;base64,aGk="}]),
            ),
            (
                json!([{"output_type": "display_data", "data": {"text/html": "<b>", "text/plain": "b"}}]),
                json!([{"type": "html", "content": "<b>"}]),
            ),
            (
                json!([{"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["x", "y"]}]),
                json!([{"type": "error", "content": "x\ny", "ename": "E", "evalue": "v", "traceback": ["x", "y"]}]),
            ),
            (json!([{"output_type": "other"}, 7]), json!([{"type": "text", "content": ""}])),
        ] {
            assert_eq!(json!(outputs_of(sent.as_array().unwrap())), expected, "{sent}");
        }
    }
}
