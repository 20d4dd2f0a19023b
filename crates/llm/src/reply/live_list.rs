//! Reads the items of a list in a JSON reply while the reply is streamed: of a field of its object, or of a bare list.
//!
//! It is stricter than the strategies that parse the complete reply: where the text is not plain JSON, it stops. What it has read may not
//! be part of the complete reply (a later fenced block may be used instead), so the caller compares both.

use serde_json::{Map, Value};

use crate::reply::object_start::ObjectStart;

/// The deepest nesting of an item or of the fields before the list.
const MAX_DEPTH: usize = 100;

/// What was completed by a piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveListPart {
    /// The list begins; these are the fields of the object before it.
    Start(Map<String, Value>),
    /// The next item of the list, an object.
    Item(Value),
}

/// Reads a list from a reply that arrives in pieces. It takes linear time.
#[derive(Clone, Debug)]
pub struct LiveList {
    field: String,
    state: State,
    start: ObjectStart,
    /// The text of the object before the list, or of the current item.
    text: String,
    nesting: Nesting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before any bracket.
    Prose,
    /// After the first bracket, where a bare list may begin.
    Bracket,
    /// Looking for the object.
    NoList,
    /// In the object, before the list.
    Fields,
    /// Where an item begins, or an empty list ends.
    Item,
    /// After an item.
    Comma,
    InItem,
    Done,
}

/// Where a character is in a JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    const fn take(&mut self, c: char) {
        match c {
            _ if self.escaped => self.escaped = false,
            '\\' if self.in_string => self.escaped = true,
            '"' => self.in_string = !self.in_string,
            '{' | '[' if !self.in_string => self.depth = self.depth.saturating_add(1),
            '}' | ']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

impl LiveList {
    /// Reads the list in this field, or a bare list of objects.
    pub fn of_field(name: &str) -> Self {
        Self {
            field: name.to_owned(),
            state: State::Prose,
            start: ObjectStart::default(),
            text: String::new(),
            nesting: Nesting::default(),
        }
    }

    /// Processes the next piece of the reply, which may end anywhere, and returns what it completes.
    pub fn push(&mut self, piece: &str) -> Vec<LiveListPart> {
        let mut parts = vec![];
        for c in piece.chars() {
            match self.state {
                State::Done => break,
                State::Prose | State::Bracket | State::NoList => self.before(c, &mut parts),
                State::Fields => self.in_fields(c, &mut parts),
                State::Item => match c {
                    _ if c.is_ascii_whitespace() => {}
                    '{' => self.start_item(),
                    _ => self.state = State::Done,
                },
                State::Comma => match c {
                    _ if c.is_ascii_whitespace() => {}
                    ',' => self.state = State::Item,
                    _ => self.state = State::Done,
                },
                State::InItem => self.in_item(c, &mut parts),
            }
        }
        parts
    }

    /// Looks for the object or the bare list.
    fn before(&mut self, c: char, parts: &mut Vec<LiveListPart>) {
        match (self.state, c) {
            // Only the first bracket of a reply, with no brace before it, begins a bare list.
            (State::Prose, '[') => self.state = State::Bracket,
            (State::Prose, '{') => self.state = State::NoList,
            (State::Bracket, '{') => {
                parts.push(LiveListPart::Start(Map::new()));
                self.start_item();
                return;
            }
            (State::Bracket, c) if !c.is_ascii_whitespace() => self.state = State::NoList,
            _ => {}
        }
        if self.start.take(c) {
            self.state = State::Fields;
            self.text = "{".to_owned();
            self.nesting = Nesting { depth: 1, ..Nesting::default() };
            self.in_fields(c, parts);
        }
    }

    fn in_fields(&mut self, c: char, parts: &mut Vec<LiveListPart>) {
        if c == '[' && self.nesting.depth == 1 && !self.nesting.in_string && self.is_after_field() {
            match self.fields_before() {
                Some(fields) => {
                    parts.push(LiveListPart::Start(fields));
                    self.state = State::Item;
                }
                None => self.state = State::Done,
            }
            return;
        }
        self.text.push(c);
        self.nesting.take(c);
        if self.nesting.depth == 0 || self.nesting.depth > MAX_DEPTH {
            self.state = State::Done;
        }
    }

    /// The text so far without the name of the field at its end.
    fn without_field(&self) -> Option<&str> {
        let name = self.text.trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
        Some(name.strip_suffix(self.field.as_str())?.strip_suffix('"')?.trim_end())
    }

    fn is_after_field(&self) -> bool {
        self.without_field().is_some_and(|before| before.ends_with(['{', ',']))
    }

    fn fields_before(&self) -> Option<Map<String, Value>> {
        let before = self.without_field()?;
        serde_json::from_str(&format!("{}}}", before.strip_suffix(',').unwrap_or(before))).ok()
    }

    fn start_item(&mut self) {
        self.state = State::InItem;
        self.text = "{".to_owned();
        self.nesting = Nesting { depth: 1, ..Nesting::default() };
    }

    fn in_item(&mut self, c: char, parts: &mut Vec<LiveListPart>) {
        self.text.push(c);
        self.nesting.take(c);
        if self.nesting.depth > MAX_DEPTH {
            self.state = State::Done;
        } else if self.nesting.depth == 0 {
            self.state = match serde_json::from_str(&self.text) {
                Ok(item) => {
                    parts.push(LiveListPart::Item(item));
                    State::Comma
                }
                Err(_) => State::Done,
            };
            self.text.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The fields before the list, and its items, however the text is cut into pieces.
    fn parts(text: &str) -> (Option<Value>, Vec<Value>) {
        let mut whole = LiveList::of_field("actions");
        let at_once = whole.push(text);
        let mut pieces = LiveList::of_field("actions");
        let one_by_one: Vec<LiveListPart> = text.chars().flat_map(|c| pieces.push(&c.to_string())).collect();
        assert_eq!(at_once, one_by_one, "{text}");
        let (mut fields, mut items) = (None, vec![]);
        for part in at_once {
            match part {
                LiveListPart::Start(before) => fields = Some(Value::Object(before)),
                LiveListPart::Item(item) => items.push(item),
            }
        }
        (fields, items)
    }

    #[test]
    fn items_are_read_as_soon_as_they_are_complete() {
        let mut list = LiveList::of_field("actions");
        assert_eq!(list.push("Here:\n```json\n{\"behavior\": {\"target\": \"[\"}, \"act"), []);
        assert_eq!(
            list.push("ions\" : [ {\"a\": \"}\\\"\"}"),
            [
                LiveListPart::Start(json!({"behavior": {"target": "["}}).as_object().unwrap().clone()),
                LiveListPart::Item(json!({"a": "}\""}))
            ]
        );
        assert_eq!(list.push(", {\"b\": {\"c\": [1, {}]}"), []);
        assert_eq!(list.push("}"), [LiveListPart::Item(json!({"b": {"c": [1, {}]}}))]);
        assert_eq!(list.push("], \"actions\": [{\"d\": 1}]}"), []);
    }

    #[test]
    fn a_bare_list_and_an_empty_one_are_lists() {
        assert_eq!(
            parts("```\n[ {\"a\": 1}, {\"b\": 2}]\n```"),
            (Some(json!({})), vec![json!({"a": 1}), json!({"b": 2})])
        );
        assert_eq!(parts("{\"actions\": []}"), (Some(json!({})), vec![]));
        assert_eq!(parts("<think>{\"actions\": [{\"x\": 1}]}</think>{\"actions\":[{\"a\":1}]}").1, [json!({"a": 1})]);
        assert_eq!(parts("See [1]: {\"actions\":[{\"a\":1}]}").1, [json!({"a": 1})]);
    }

    #[test]
    fn it_stops_where_the_text_is_not_plain_json_or_the_list_is_elsewhere() {
        for (text, items) in [
            ("{\"actions\": [{\"a\": 1} {\"b\": 2}]}", 1),
            ("{\"actions\": [{\"a\": 1}, {b: 2}, {\"c\": 3}]}", 1),
            ("{\"actions\": [{\"a\": 1}, 7, {\"c\": 3}]}", 1),
            ("{\"response\": {\"actions\": [{\"a\": 1}]}}", 0),
            ("{\"note\": \"\\\"actions\\\": [\", \"x\": [{\"a\": 1}]}", 0),
            ("{\"other\" \"actions\": [{\"a\": 1}]}", 0),
            ("{'a': 1, \"actions\": [{\"a\": 1}]}", 0),
            ("nothing", 0),
        ] {
            assert_eq!(parts(text).1.len(), items, "{text}");
        }
        let deep = format!("{{\"actions\": [{{\"a\": {}1{}}}, {{\"b\": 1}}]}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(parts(&deep).1, Vec::<Value>::new());
    }
}
