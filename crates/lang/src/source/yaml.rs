//! The YAML tree of a file: every node has its position.

use crate::message::message::Message;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::source::core_schema;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::{Span, Spanned};
use crate::value::digits::Digits;
use crate::value::exact::ExactValue;

/// The maximum nesting depth of lists and mappings, with aliases followed. Functions that walk a tree may recurse.
pub const MAX_DEPTH: usize = 128;

/// The maximum number of nodes in a document, with aliases expanded.
pub const MAX_NODES: usize = 500_000;

/// The maximum number of nodes in a workflow state file.
pub const MAX_STATE_FILE_NODES: usize = 2_000_000;

/// The maximum total size of the scalars of a document, with aliases expanded, in bytes (64 MiB).
pub const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// A scalar, a list or a mapping. An alias shares the node that it refers to.
#[derive(Clone, Debug)]
pub struct YamlNode {
    /// The position: of a quoted scalar with its quotes; of a block scalar from the first to the last character of its text,
    /// without its header; of a collection from its first to its last child or bracket; of an absent value as a point. An alias
    /// has the position of its anchor.
    pub span: Span,
    pub kind: NodeKind,
}

#[derive(Clone, Debug)]
pub enum NodeKind {
    Scalar(Scalar),
    Sequence(Vec<Arc<YamlNode>>),
    /// A mapping, in the order of the file, without duplicates.
    Mapping(Vec<YamlEntry>),
}

/// One key of a mapping and its value.
#[derive(Clone, Debug)]
pub struct YamlEntry {
    /// The key as text, whatever it looks like (`1:` and `true:` are `"1"` and `"true"`).
    pub key: Spanned<String>,
    pub value: Arc<YamlNode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarStyle {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// `|`
    Literal,
    /// `>`
    Folded,
}

#[derive(Clone, Debug)]
pub struct Scalar {
    /// The decoded text, without quotes, escapes, indentation and folding. Empty for an absent value.
    pub text: String,
    pub style: ScalarStyle,
    /// The name of the tag without `!!`, one of `str`, `int`, `float`, `bool`, `null`. The text fits the tag.
    pub tag: Option<String>,
}

impl Scalar {
    /// The value by the core schema of YAML 1.2: only plain scalars resolve to null, booleans and numbers; `yes`, `no`, `on`,
    /// `off` are text; a tag takes precedence. What JSON cannot represent (`.inf`, `.nan`, integers beyond 64 bits) stays text.
    pub fn value(&self) -> Value {
        match &self.tag {
            Some(tag) => core_schema::tagged(tag, &self.text).unwrap_or_else(|| Value::String(self.text.clone())),
            None if self.style == ScalarStyle::Plain => core_schema::plain(&self.text),
            None => Value::String(self.text.clone()),
        }
    }
}

impl YamlNode {
    /// The tree as JSON, with aliases expanded. Limited by [`MAX_NODES`] and [`MAX_TEXT_BYTES`].
    pub fn to_json(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar(scalar) => scalar.value(),
            NodeKind::Sequence(items) => Value::Array(items.iter().map(|item| item.to_json()).collect()),
            NodeKind::Mapping(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.value.clone(), entry.value.to_json())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// The tree as JSON, with the digits of its plain numbers.
    pub fn to_exact(&self) -> ExactValue {
        ExactValue::new(self.to_json(), self.digits())
    }

    fn digits(&self) -> Option<Digits> {
        match &self.kind {
            NodeKind::Scalar(scalar) => Digits::of_number(&scalar.text).filter(|_| scalar.value().is_number()),
            NodeKind::Sequence(items) => Digits::of_items(items.iter().map(|item| item.digits())),
            NodeKind::Mapping(entries) => {
                Digits::of_fields(entries.iter().map(|entry| (entry.key.value.clone(), entry.value.digits())))
            }
        }
    }

    pub fn as_mapping(&self) -> Option<&[YamlEntry]> {
        match &self.kind {
            NodeKind::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn as_sequence(&self) -> Option<&[Arc<YamlNode>]> {
        match &self.kind {
            NodeKind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.kind {
            NodeKind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Arc<YamlNode>> {
        self.as_mapping()?.iter().find(|entry| entry.key.value == key).map(|entry| &entry.value)
    }

    /// The description for a message: "text", "a number", "a boolean", "nothing", "a list", "a mapping".
    pub fn describe(&self) -> Message {
        Message::word(match &self.kind {
            NodeKind::Sequence(_) => "a list",
            NodeKind::Mapping(_) => "a mapping",
            NodeKind::Scalar(scalar) => match scalar.value() {
                Value::Null => "nothing",
                Value::Bool(_) => "a boolean",
                Value::Number(_) => "a number",
                _ => "text",
            },
        })
    }
}

#[derive(Clone, Debug)]
pub struct ParsedYaml {
    /// The root of the document; `None` if there is none or if the document could not be read to its end.
    pub root: Option<Arc<YamlNode>>,
    /// Its problems, in file order. If there are errors, `root` (if any) is the part that could be read.
    pub diagnostics: Vec<Diagnostic>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::source::compose::parse;
    use crate::source::locate::{locate, locate_bytes};
    use crate::source::text::SourceFile;

    fn read(text: &str) -> ParsedYaml {
        parse(&Arc::new(SourceFile::new("a.yaml", text)))
    }

    fn rules(parsed: &ParsedYaml) -> Vec<&'static str> {
        parsed.diagnostics.iter().map(|diagnostic| diagnostic.rule).collect()
    }

    #[test]
    fn plain_numbers_keep_their_digits() {
        let parsed = read("a: 1.10\nb: ['1.10', 1.0, +2.50, .50, 5., 007, 0x10, !!str 1.0]\nc: &c { d: 1e3 }\ne: *c\n");
        let expected = r#"{"a":1.10,"b":["1.10",1.0,2.50,0.50,5.0,7,16,"1.0"],"c":{"d":1e3},"e":{"d":1e3}}"#;
        assert_eq!(parsed.root.unwrap().to_exact().to_string(), expected);
    }

    #[test]
    fn a_document_becomes_json() {
        let parsed = read(
            "# a script\n姓名: 张三\n1: one\ntrue: yes\nnull: ~\nempty:\nlist: [1, 2.5, 0x10, '3', no, {a: b}]\n\
             text: |\n  你好\n  世界\nfolded: >-\n  a\n  b\nquoted: \"\\u4f60\"\nshared: &s {x: 1}\nagain: *s\n\
             tagged: [!!str 5, !!int '5', ! 7, !!float 1, !!null '']\n",
        );
        assert_eq!(rules(&parsed), Vec::<&str>::new());
        let expected = json!({
            "姓名": "张三", "1": "one", "true": "yes", "null": null, "empty": null,
            "list": [1, 2.5, 16, "3", "no", {"a": "b"}], "text": "你好\n世界\n", "folded": "a b", "quoted": "你",
            "shared": {"x": 1}, "again": {"x": 1}, "tagged": ["5", 5, "7", 1, null],
        });
        assert_eq!(parsed.root.unwrap().to_json(), expected);
    }

    #[test]
    fn json_is_yaml() {
        let text = r#"{"a": [1, 2.0, null, true, "\ud83d\ude00\/"], "b": {"c": {}}}"#;
        let root = read(text).root.unwrap();
        assert_eq!(root.to_json(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn every_node_has_its_position() {
        let text =
            "\u{feff}a:\n  - 好: [x, {y: z}] # c\n    '引': \"q\"\n# tail\n\nb: |\n  text\n  more\n\nc: >\n\nd:\n";
        let file = Arc::new(SourceFile::new("a.yaml", text));
        let root = parse(&file).root.unwrap();
        let at = |node: &YamlNode| file.slice(node.span).to_owned();
        let list = root.get("a").unwrap();
        let item = &list.as_sequence().unwrap()[0];
        let first = &item.as_mapping().unwrap()[0];
        assert_eq!(file.slice(first.key.span), "好");
        assert_eq!(at(&first.value), "[x, {y: z}]");
        assert_eq!(at(&first.value.as_sequence().unwrap()[1]), "{y: z}");
        assert_eq!(at(item), "好: [x, {y: z}] # c\n    '引': \"q\"");
        assert!(at(list).ends_with("\"q\""), "a block collection ends at its last child");
        assert_eq!(file.slice(item.as_mapping().unwrap()[1].key.span), "'引'");
        assert_eq!(at(root.get("b").unwrap()), "text\n  more");
        assert_eq!(at(root.get("c").unwrap()), ">");
        assert_eq!(root.get("d").unwrap().span, Span::point(text.len() - 1));
        assert_eq!(root.span.start, 3);
    }

    #[test]
    fn nodes_are_described_in_words() {
        let table = [
            ("x", "text"),
            ("'5'", "text"),
            ("5", "a number"),
            ("true", "a boolean"),
            ("~", "nothing"),
            ("", "nothing"),
            ("[]", "a list"),
            ("{}", "a mapping"),
            ("{{ x }}", "text"),
            ("*nowhere", "text"),
        ];
        for (text, expected) in table {
            let root = read(&format!("k: {text}\n")).root.unwrap();
            assert_eq!(root.get("k").unwrap().describe(), expected, "{text}");
        }
    }

    #[test]
    fn a_tree_remains_if_the_syntax_is_valid() {
        let parsed = read("a: 1\na: 2\n<<: *x\n? [k]\n: v\nb: *y\nc: !z 3\n---\nd: 4\n");
        assert_eq!(parsed.root.as_ref().unwrap().to_json(), json!({"a": 1, "b": "*y", "c": 3}));
        let expected = [
            "duplicate-key",
            "merge-key",
            "unknown-anchor",
            "key-not-text",
            "unknown-anchor",
            "unknown-tag",
            "several-documents",
        ];
        assert_eq!(rules(&parsed), expected);
    }

    /// A file that doubles (or nests) with every anchor.
    fn chain(length: usize, item: impl Fn(usize) -> String) -> String {
        (1..length).fold("a0: &a0 x\n".to_owned(), |text, n| text + &format!("a{n}: &a{n} {}\n", item(n - 1)))
    }

    #[test]
    fn hostile_files_are_rejected_at_once() {
        let many = MAX_NODES + 10;
        let table = [
            ("billion laughs", chain(60, |n| format!("[*a{n}, *a{n}]")), "too-many-nodes"),
            (
                "a long text repeated",
                format!("a: &a {}\nb: [{}]\n", "x".repeat(500_000), "*a,".repeat(900)),
                "too-many-nodes",
            ),
            ("a chain of aliases", chain(5_000, |n| format!("[*a{n}]")), "too-deep"),
            ("brackets", "[".repeat(1_000_000), "too-deep"),
            ("brackets and keys", "{a: ".repeat(100_000), "too-deep"),
            ("dashes", "- ".repeat(1_000_000), "too-deep"),
            ("question marks", "? ".repeat(100_000), "too-deep"),
            ("indentation", (0..2_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect(), "too-deep"),
            ("mixed", "- [".to_owned() + &"{a: [".repeat(70), "too-deep"),
            ("block and flow", "- ".repeat(100) + &"[".repeat(100) + &"]".repeat(100), "too-deep"),
            ("many nodes", format!("[{}]", "a,".repeat(many)), "too-many-nodes"),
            (
                "many open lists",
                "- [".to_owned() + &format!("{}\n  [", "a,".repeat(many / 2)).repeat(3),
                "too-many-nodes",
            ),
            ("a hundred megabytes", " ".repeat(100 << 20), "file-too-large"),
            ("a NUL", "a: b\0c: [".to_owned(), "not-text"),
        ];
        for (name, text, expected) in table {
            // Anything that takes more than linear time would not finish here.
            let parsed = read(&text);
            assert_eq!(rules(&parsed), [expected], "{name}");
            assert!(parsed.root.is_none(), "{name}");
        }
    }

    #[test]
    fn the_deepest_valid_document_can_be_walked() {
        let flow = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        let parsed = read(&flow);
        assert_eq!(rules(&parsed), Vec::<&str>::new());
        assert!(parsed.root.unwrap().to_json().is_array());
        assert_eq!(rules(&read(&format!("[{flow}]"))), ["too-deep"]);
        let block: String = (0..MAX_DEPTH).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert_eq!(rules(&read(&block)), Vec::<&str>::new());
    }

    #[test]
    fn a_file_full_of_mistakes_gives_a_bounded_number_of_reports() {
        let anchors: String = (0..2_000).map(|n| format!("- &{}{n} x\n", "好".repeat(50))).collect();
        let table = [
            ("duplicate-key", "a: 1\n".repeat(5_000)),
            ("key-not-text", format!("[{}]", "{{x}},".repeat(20_000))),
            ("unknown-anchor", anchors + &format!("- *{}x\n", "坏".repeat(50)).repeat(5_000)),
            ("unknown-tag", "- !x y\n".repeat(5_000)),
        ];
        for (rule, text) in table {
            let parsed = read(&text);
            assert_eq!(rules(&parsed), [rule; 100]);
            crate::source::render::human::human(&parsed.diagnostics, false);
        }
        let parsed = read(&("a: 1\n".repeat(5_000) + "b: ]\n"));
        assert!(parsed.diagnostics.len() <= 100);
        assert!(rules(&parsed).contains(&"yaml-syntax"));
    }

    /// Pieces of YAML, so that random text gets past its first character.
    fn yaml_like() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => prop::sample::select(vec![
                "a: ", "b:", "- ", "\n", "\n  ", "\n    ", "\r\n", "\r", "\t", " ", "[", "]", "{", "}", ",", "{{ x }}", "'", "\"",
                "\\", "\\u4f60", "|", ">", "|2-\n", "&a ", "*a", "!", "!!str ", "!!int ", "<<: ", "? ", ": ", "：", "，", "“", "　",
                "\u{feff}", "---\n", "...\n", "%", "#", " # c", "你好", "😀", "\0", "\u{1}", "\u{85}", "\u{2028}", "~", "0x1", "1e9",
            ]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    fn check_spans(file: &SourceFile, node: &YamlNode) {
        let fits = |span: Span| file.text().get(span.range()).is_some();
        assert!(fits(node.span), "{:?}", node.span);
        match &node.kind {
            NodeKind::Scalar(scalar) => {
                let count = scalar.text.chars().count();
                for range in [0..0, 0..1, 0..count, count..count, count / 2..count, count..count + 1] {
                    assert!(fits(locate(file, node, range.clone())), "{range:?}");
                }
                assert!(fits(locate_bytes(file, node, 1..scalar.text.len())));
            }
            NodeKind::Sequence(items) => items.iter().for_each(|item| check_spans(file, item)),
            NodeKind::Mapping(entries) => {
                for entry in entries {
                    assert!(fits(entry.key.span), "{:?}", entry.key.span);
                    check_spans(file, &entry.value);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_makes_the_reader_panic(text in yaml_like()) {
            let file = Arc::new(SourceFile::new("a.yaml", text));
            let parsed = parse(&file);
            prop_assert!(parsed.root.is_some() || !parsed.diagnostics.is_empty());
            for diagnostic in &parsed.diagnostics {
                prop_assert!(file.text().get(diagnostic.span.range()).is_some(), "{:?}", diagnostic.span);
                for edit in diagnostic.fixes.iter().flat_map(|fix| &fix.edits) {
                    prop_assert!(file.text().get(edit.span.range()).is_some(), "{:?}", edit.span);
                }
            }
            let shown = crate::source::render::human::human(&parsed.diagnostics, false);
            prop_assert!(shown.is_empty() == parsed.diagnostics.is_empty());
            if let Some(root) = &parsed.root {
                check_spans(&file, root);
                let _ = root.to_json();
            }
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            match SourceFile::from_bytes("a.yaml", bytes) {
                Ok(file) => drop(parse(&Arc::new(file))),
                Err(diagnostic) => {
                    prop_assert!(diagnostic.file.text().get(diagnostic.span.range()).is_some());
                    prop_assert!(!crate::source::render::human::human(&[*diagnostic], false).is_empty());
                }
            }
        }
    }
}
