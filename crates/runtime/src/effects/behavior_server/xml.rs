//! Reads the plans that older servers write as XML, into the form that they have as JSON (docs/protocol.md).

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use serde_json::{Map, Value, json};

use crate::effects::behavior_server::error::BehaviorServerError;
use bcc_llm::http::body::BodyError;
use bcc_llm::http::lines::BYTE_ORDER_MARK;

/// The maximum number of elements of one answer.
const MAX_ELEMENTS: usize = 20_000;

/// The maximum depth of elements.
const MAX_DEPTH: usize = 32;

/// An element with its own text, without the text of its children.
#[derive(Debug, Default)]
struct XmlElement {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<XmlElement>,
}

/// Whether an answer may be XML.
pub(crate) fn is_xml(answer: &[u8]) -> bool {
    let start = answer.strip_prefix(BYTE_ORDER_MARK).unwrap_or(answer);
    start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
}

/// A plan or a judgement in the form that it has as JSON: `workflow` and `stages` as `{"title", "focus", "stages": […]}`, `steps` as
/// `{"focus", "goals", "steps": […]}`, `behavior` as `{"behavior": {…}}`, `reflection` as `{"target_achieved", "reason"}`.
///
/// # Errors
/// It is not XML, exceeds a limit, or its root is another element.
pub fn read_xml(answer: &[u8]) -> Result<Value, BehaviorServerError> {
    let text = std::str::from_utf8(answer).map_err(|_| invalid("it is not UTF-8"))?;
    let root = parse(&escaped(text.trim_start_matches('\u{feff}')))?;
    match root.name.as_str() {
        "workflow" | "stages" => Ok(stages(&root)),
        "steps" => Ok(plan(&root, "step")),
        "behavior" => Ok(json!({ "behavior": behavior(&root) })),
        "reflection" => Ok(reflection(&root)),
        _ => Err(invalid("it is XML, but neither a plan nor a judgement")),
    }
}

fn invalid(problem: &'static str) -> BehaviorServerError {
    BodyError::Invalid(problem).into()
}

/// The text with `&lt;` and `&amp;` for characters that begin no markup. Models write goals such as `RMSE < 25000` as they are.
fn escaped(text: &str) -> Cow<'_, str> {
    let mut escaped = String::new();
    let mut copied = 0;
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(['<', '&'])).map(|at| from + at) {
        let rest = text.get(at..).unwrap_or_default();
        from = at + 1;
        if let Some(data) = rest.strip_prefix("<![CDATA[") {
            let end = data.find("]]>").map_or(data.len(), |end| end + 3);
            from = at + "<![CDATA[".len() + end;
            continue;
        }
        let after = rest.get(1..).unwrap_or_default();
        let replacement = match rest.starts_with('<') {
            true if after.starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!' | '?' | '_')) => continue,
            true => "&lt;",
            false if is_reference(after) => continue,
            false => "&amp;",
        };
        escaped.push_str(text.get(copied..at).unwrap_or_default());
        escaped.push_str(replacement);
        copied = from;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    escaped.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(escaped)
}

/// The maximum length of a reference that is read, in bytes: `#x` with eight digits, and its end.
const MAX_REFERENCE_BYTES: usize = 11;

/// Whether a text continues a reference after its `&`: `lt;`, `#38;`.
fn is_reference(after: &str) -> bool {
    // No reference is longer, and a text may have any number of `&`.
    let start = after.get(..after.floor_char_boundary(MAX_REFERENCE_BYTES)).unwrap_or_default();
    let Some((name, _)) = start.split_once(';') else { return false };
    match name.strip_prefix('#') {
        Some(number) => {
            let digits = number.strip_prefix(['x', 'X']);
            let is_digit = |c: char| if digits.is_some() { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
            let digits = digits.unwrap_or(number);
            !digits.is_empty() && digits.len() <= 8 && digits.chars().all(is_digit)
        }
        None => resolve_predefined_entity(name).is_some(),
    }
}

fn parse(text: &str) -> Result<XmlElement, BehaviorServerError> {
    const MALFORMED: &str = "it is not well-formed XML";
    let malformed = || invalid(MALFORMED);
    let mut reader = Reader::from_str(text);
    let mut open: Vec<XmlElement> = Vec::new();
    let mut count = 0_usize;
    loop {
        let event = reader.read_event().map_err(|_| malformed())?;
        let closed = match event {
            Event::Start(start) => {
                count += 1;
                if count > MAX_ELEMENTS || open.len() >= MAX_DEPTH {
                    return Err(invalid("its XML has too many elements"));
                }
                open.push(element(&start).ok_or_else(malformed)?);
                None
            }
            Event::Empty(start) => {
                count += 1;
                if count > MAX_ELEMENTS {
                    return Err(invalid("its XML has too many elements"));
                }
                Some(element(&start).ok_or_else(malformed)?)
            }
            Event::End(_) => Some(open.pop().ok_or_else(malformed)?),
            Event::Text(piece) => {
                push_text(&mut open, &piece.xml_content(XmlVersion::Implicit1_0).map_err(|_| malformed())?);
                None
            }
            Event::CData(piece) => {
                push_text(&mut open, &piece.xml_content(XmlVersion::Implicit1_0).map_err(|_| malformed())?);
                None
            }
            Event::GeneralRef(reference) => {
                // Entities of a document type are not read, so that nothing multiplies.
                let character = reference.resolve_char_ref().map_err(|_| malformed())?;
                match (character, reference.decode()) {
                    (Some(character), _) => push_text(&mut open, character.encode_utf8(&mut [0; 4])),
                    (None, Ok(name)) => push_text(&mut open, resolve_predefined_entity(&name).unwrap_or_default()),
                    (None, Err(_)) => return Err(malformed()),
                }
                None
            }
            Event::Eof => return Err(malformed()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => None,
        };
        let Some(closed) = closed else { continue };
        match open.last_mut() {
            Some(parent) => parent.children.push(closed),
            // What follows the root is not read.
            None => return Ok(closed),
        }
    }
}

fn element(start: &BytesStart<'_>) -> Option<XmlElement> {
    let name = std::str::from_utf8(start.local_name().into_inner()).ok()?.to_owned();
    let mut attributes = Vec::new();
    // An attribute without a value, as in `<stage optional>`, says nothing that is read here.
    for attribute in start.attributes().with_checks(false).flatten() {
        let key = std::str::from_utf8(attribute.key.local_name().into_inner()).ok()?.to_owned();
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned();
        attributes.push((key, value));
    }
    Some(XmlElement { name, attributes, ..XmlElement::default() })
}

fn push_text(open: &mut [XmlElement], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

impl XmlElement {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    fn text(&self) -> &str {
        self.text.trim()
    }

    /// The text of a child; empty without it.
    fn text_of(&self, name: &str) -> &str {
        self.child(name).map(Self::text).unwrap_or_default()
    }
}

/// `<workflow>`, or `<stages>` alone. The title is in either.
fn stages(root: &XmlElement) -> Value {
    let inner = root.child("stages").unwrap_or(root);
    let mut read = plan(inner, "stage");
    let title = [root, inner].into_iter().map(|element| element.text_of("title")).find(|title| !title.is_empty());
    if let (Some(fields), Some(title)) = (read.as_object_mut(), title) {
        fields.insert("title".to_owned(), Value::from(title));
    }
    read
}

/// The items of a plan, directly or in `<remaining>`.
fn plan(root: &XmlElement, kind: &str) -> Value {
    let places = root.children("remaining").chain([root]);
    let items: Vec<Value> = places.flat_map(|place| place.children(kind)).map(|child| item(child, kind)).collect();
    let mut fields = Map::new();
    fields.insert(format!("{kind}s"), Value::Array(items));
    for name in ["focus", "goals"] {
        fields.insert(name.to_owned(), Value::from(root.text_of(name)));
    }
    Value::Object(fields)
}

fn item(sent: &XmlElement, kind: &str) -> Value {
    let id = sent.attribute("id").or_else(|| sent.attribute(&format!("{kind}_id"))).unwrap_or_default();
    let title = sent.attribute("title").unwrap_or_else(|| sent.text_of("title"));
    json!({
        format!("{kind}_id"): id,
        "title": if title.is_empty() { id } else { title },
        "goal": sent.text_of("goal"),
        "verified_artifacts": named(sent.child("verified_artifacts")),
        "required_variables": named(sent.child("required_variables")),
    })
}

fn behavior(sent: &XmlElement) -> Value {
    let acceptance = sent.child("acceptance").into_iter().flat_map(|list| list.children("criterion"));
    let acceptance: Vec<&str> = acceptance.map(XmlElement::text).filter(|text| !text.is_empty()).collect();
    json!({
        "behavior_id": sent.attribute("id"),
        "step_id": sent.attribute("step_id"),
        "agent": sent.text_of("agent"),
        "task": sent.text_of("task"),
        "inputs": named(sent.child("inputs")),
        "outputs": named(sent.child("outputs")),
        "acceptance": acceptance,
    })
}

/// `<variable name="…">…</variable>` and `<artifact name="…">…</artifact>`.
fn named(list: Option<&XmlElement>) -> Map<String, Value> {
    let items = list.into_iter().flat_map(|list| &list.children);
    items.filter_map(|item| Some((item.attribute("name")?.to_owned(), Value::from(item.text())))).collect()
}

fn reflection(root: &XmlElement) -> Value {
    let achieved = root.attribute("current_step_is_complete").map(|word| word.eq_ignore_ascii_case("true"));
    let decision = root.child("decision");
    let next = decision.map(|decision| decision.text_of("next_state")).unwrap_or_default();
    let reason = decision.map(|decision| decision.text_of("reasoning")).unwrap_or_default();
    json!({ "target_achieved": achieved, "next_state": next, "reason": reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, BehaviorServerError> {
        read_xml(text.as_bytes())
    }

    #[test]
    fn a_plan_is_read_as_the_same_plan_in_json() {
        let item = r#"title="Read &quot;it&quot;"><goal>x &gt; 0 &amp; y &#60; 2</goal><verified_artifacts><variable name="df">a table</variable></verified_artifacts><required_variables></required_variables>"#;
        let stage = json!({ "stage_id": "read", "title": "Read \"it\"", "goal": "x > 0 & y < 2", "verified_artifacts": { "df": "a table" }, "required_variables": {} });
        for (xml, expected) in [
            (
                format!("<stages>\n<remaining>\n<stage id=\"read\" {item}</stage>\n</remaining>\n<title>T</title>\n<focus>a &lt; b</focus>\n</stages>\n"),
                json!({ "stages": [stage], "title": "T", "focus": "a < b", "goals": "" }),
            ),
            (
                format!("<?xml version=\"1.0\"?><!-- c --><workflow><title> T </title><description>d</description><stages><stage stage_id=\"read\" {item}</stage></stages></workflow>"),
                json!({ "stages": [stage], "title": "T", "focus": "", "goals": "" }),
            ),
            (
                "\u{feff} <steps><remaining/><step id=\"load\"><goal><![CDATA[a <b> & c]]></goal></step><goals>g</goals></steps>".to_owned(),
                json!({ "steps": [{ "step_id": "load", "title": "load", "goal": "a <b> & c", "verified_artifacts": {}, "required_variables": {} }], "focus": "", "goals": "g" }),
            ),
            (
                "<behavior id=\"load_b1\" step_id=\"load\"><agent>analyst</agent><task>Load it</task><inputs><variable name=\"path\">./a.csv</variable></inputs><outputs><artifact name=\"df\">rows</artifact></outputs><acceptance><criterion>len(df) > 0</criterion><criterion/></acceptance></behavior>".to_owned(),
                json!({ "behavior": { "behavior_id": "load_b1", "step_id": "load", "agent": "analyst", "task": "Load it", "inputs": { "path": "./a.csv" }, "outputs": { "df": "rows" }, "acceptance": ["len(df) > 0"] } }),
            ),
            (
                "<reflection current_step_is_complete=\"true\"><evaluation/><decision><next_state>STEP_COMPLETED</next_state><reasoning>done</reasoning></decision></reflection>".to_owned(),
                json!({ "target_achieved": true, "next_state": "STEP_COMPLETED", "reason": "done" }),
            ),
        ] {
            assert!(is_xml(xml.as_bytes()), "{xml}");
            assert_eq!(read(&xml).unwrap(), expected, "{xml}");
        }
    }

    #[test]
    fn characters_that_models_do_not_escape_are_text() {
        let xml = "<steps><step id=\"s\"><goal>RMSE < 25000 & R² > 0.85 &nbsp; <= &amp; &lt;</goal></step></steps>";
        assert_eq!(read(xml).unwrap()["steps"][0]["goal"], "RMSE < 25000 & R² > 0.85 &nbsp; <= & <");
    }

    #[test]
    fn other_xml_is_an_error_that_repeats_nothing_and_multiplies_nothing() {
        let deep = "<a>".repeat(MAX_DEPTH + 1);
        let many = format!("<steps>{}</steps>", "<x/>".repeat(MAX_ELEMENTS + 1));
        let entity = "<!DOCTYPE x [<!ENTITY e \"secret\">]><steps><step id=\"s\"><goal>&e;</goal></step></steps>";
        assert_eq!(read(entity).unwrap()["steps"][0]["goal"], "&e;");
        for xml in [
            "<html><body>secret</body></html>",
            "<steps><step></steps>",
            "<steps>",
            "<steps",
            "<",
            "</steps>",
            &deep,
            &many,
        ] {
            let error = read(xml).unwrap_err();
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
        assert!(read_xml(b"<steps>\xff</steps>").is_err());
        for (answer, expected) in [(&b"{\"a\": 1}"[..], false), (b"", false), (b" \n<a/>", true)] {
            assert_eq!(is_xml(answer), expected);
        }
    }
}
