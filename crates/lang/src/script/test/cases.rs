//! `for`: the cases of a test. The values of a case replace `{{ name }}` in every text of the test.

use crate::message::message::Message;
use crate::message::msg;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::script::fields::{Fields, is_null, shortened};
use crate::script::findings::Findings;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, Scalar, ScalarStyle, YamlEntry, YamlNode};

/// The maximum number of cases of one test.
pub(crate) const MAX_CASES: usize = 10_000;

/// The maximum length of a case name that is built from its values, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The key that names a case.
const NAME: &str = "case";

/// The values of one case.
#[derive(Clone, Debug)]
pub struct CaseValues {
    /// The name in reports.
    pub name: String,
    pub values: Vec<(String, Arc<YamlNode>)>,
}

/// The cases of the test at `root`; `None` for a test without `for`. Invalid cases are reported and left out.
///
/// `for` is a list of mappings, or a table: a list of lists, the first of which contains the names.
pub fn cases(root: &YamlNode, file: &Arc<SourceFile>, findings: &Findings) -> Option<Vec<CaseValues>> {
    let node = root.get("for")?;
    let report = |rule, message: Message, at: &YamlNode, help: &'static str| {
        findings.report(Diagnostic::error(rule, message, file, at.span).with_help(help));
    };
    let NodeKind::Sequence(items) = &node.kind else {
        let message = msg!("`for` must be a list of cases, but this is {}", node.describe());
        report(
            "wrong-type",
            message,
            node,
            "write each case on a line of its own, as in `- { answer: 我叫小林, name: 小林 }`",
        );
        return Some(vec![]);
    };
    if items.is_empty() {
        report("empty-list", msg!("`for` has no cases"), node, "add at least one, or remove it");
    }
    if items.len() > MAX_CASES {
        let message = msg!("`for` has {} cases, but a test can have at most {MAX_CASES}", items.len());
        report("out-of-range", message, node, "split it into several tests");
        return Some(vec![]);
    }
    let table = items.first().and_then(|first| first.as_sequence());
    let mut read: Vec<Vec<(String, Arc<YamlNode>)>> = Vec::with_capacity(items.len());
    match table {
        Some(head) => {
            let names: Vec<String> = head.iter().filter_map(|name| Some(name.as_scalar()?.text.clone())).collect();
            for row in items.iter().skip(1) {
                match row.as_sequence() {
                    Some(cells) if cells.len() == names.len() => {
                        read.push(names.iter().cloned().zip(cells.iter().cloned()).collect());
                    }
                    Some(cells) => {
                        let message =
                            msg!("this row has {} values, but the table has {} names", cells.len(), names.len());
                        report(
                            "wrong-type",
                            message,
                            row,
                            "write a value for each name in the first row; for no value, write `~`",
                        );
                    }
                    None => {
                        let message = msg!("a row of the table must be a list, but this is {}", row.describe());
                        report(
                            "wrong-type",
                            message,
                            row,
                            "write the values in the order of the names in the first row",
                        );
                    }
                }
            }
        }
        None => {
            // A case without a value would keep the text `{{ name }}`, which tests nothing.
            let all_names = names(items);
            for item in items {
                match item.as_mapping() {
                    Some(entries) if !entries.is_empty() => {
                        let is_missing = |name: &&&str| !entries.iter().any(|entry| entry.key.value == ***name);
                        let lacking: Vec<_> = all_names.iter().filter(is_missing).map(|name| shortened(name)).collect();
                        if !lacking.is_empty() {
                            let lacking = Message::names(lacking);
                            let message = msg!("this case has no {lacking}, but another case does");
                            report(
                                "missing-key",
                                message,
                                item,
                                "write a value for each name in every case; for no value, write `~`",
                            );
                        }
                        let value = |entry: &YamlEntry| (entry.key.value.clone(), Arc::clone(&entry.value));
                        read.push(entries.iter().map(value).collect());
                    }
                    _ => {
                        let message =
                            msg!("a case must be a mapping of names to values, but this is {}", item.describe());
                        report("wrong-type", message, item, "write it like this: `- { answer: 我叫小林, name: 小林 }`");
                    }
                }
            }
        }
    }
    Some(with_names(read))
}

/// The names that have a value in any case.
fn names(items: &[Arc<YamlNode>]) -> BTreeSet<&str> {
    let entries = items.iter().flat_map(|item| item.as_mapping().unwrap_or_default());
    entries.map(|entry| entry.key.value.as_str()).filter(|name| *name != NAME).collect()
}

/// Gives each case a unique name.
fn with_names(read: Vec<Vec<(String, Arc<YamlNode>)>>) -> Vec<CaseValues> {
    let mut taken = BTreeSet::new();
    let mut cases = Vec::with_capacity(read.len());
    for (number, values) in read.into_iter().enumerate() {
        let given_name = values.iter().find(|(name, _)| name == NAME).map(|(_, node)| text_of(node));
        let built_name = || {
            let pairs = values.iter().map(|(name, node)| format!("{name}: {}", text_of(node)));
            let name: String = pairs.collect::<Vec<_>>().join(", ").split_whitespace().collect::<Vec<_>>().join(" ");
            match name.char_indices().nth(MAX_NAME_CHARS) {
                Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
                None => name,
            }
        };
        let mut name = given_name.unwrap_or_else(built_name);
        if !taken.insert(name.clone()) {
            name = format!("{name} #{}", number + 1);
            taken.insert(name.clone());
        }
        cases.push(CaseValues { name, values });
    }
    cases
}

fn text_of(node: &YamlNode) -> String {
    match node.as_scalar() {
        Some(scalar) => scalar.text.clone(),
        None => node.to_json().to_string(),
    }
}

/// The test at `root` with the values of one case filled in.
pub fn filled(root: &YamlNode, case: &CaseValues) -> YamlNode {
    let NodeKind::Mapping(entries) = &root.kind else { return root.clone() };
    let fill = |entry: &YamlEntry| match entry.key.value.as_str() {
        "for" => entry.clone(),
        _ => YamlEntry { key: entry.key.clone(), value: self::fill_node(&entry.value, case) },
    };
    YamlNode { span: root.span, kind: NodeKind::Mapping(entries.iter().map(fill).collect()) }
}

fn fill_node(node: &Arc<YamlNode>, case: &CaseValues) -> Arc<YamlNode> {
    match &node.kind {
        NodeKind::Scalar(scalar) => match fill_scalar(scalar, case) {
            Some(kind) => Arc::new(YamlNode { span: node.span, kind }),
            None => Arc::clone(node),
        },
        NodeKind::Sequence(items) => {
            let items = items.iter().map(|item| fill_node(item, case)).collect();
            Arc::new(YamlNode { span: node.span, kind: NodeKind::Sequence(items) })
        }
        NodeKind::Mapping(entries) => {
            let fill_entry = |entry: &YamlEntry| {
                let mut key = entry.key.clone();
                if let Some(NodeKind::Scalar(scalar)) = fill_text(&key.value, case) {
                    key.value = scalar.text;
                }
                YamlEntry { key, value: fill_node(&entry.value, case) }
            };
            Arc::new(YamlNode { span: node.span, kind: NodeKind::Mapping(entries.iter().map(fill_entry).collect()) })
        }
    }
}

fn fill_scalar(scalar: &Scalar, case: &CaseValues) -> Option<NodeKind> {
    if !scalar.text.contains("{{") {
        return None;
    }
    // A text that is only `{{ x }}` becomes the value itself, with its type.
    let placeholder = scalar.text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim);
    if let Some((_, value)) = case.values.iter().find(|(name, _)| Some(name.as_str()) == placeholder) {
        return Some(value.kind.clone());
    }
    fill_text(&scalar.text, case)
}

/// The text with the values filled in; `None` if it uses no value.
fn fill_text(text: &str, case: &CaseValues) -> Option<NodeKind> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let found = after.split_once("}}").and_then(|(name, after_placeholder)| {
            let (_, value) = case.values.iter().find(|(known, _)| known == name.trim())?;
            Some((value, after_placeholder))
        });
        match found {
            Some((value, after_placeholder)) => {
                if !is_null(value) {
                    out.push_str(&text_of(value));
                }
                changed = true;
                rest = after_placeholder;
            }
            None => {
                out.push_str("{{");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    // Quoted, so that the result stays text whatever it looks like.
    changed.then_some(NodeKind::Scalar(Scalar { text: out, style: ScalarStyle::DoubleQuoted, tag: None }))
}

/// Reports values that no text of the test uses: the name is misspelled in one of the two places.
pub(crate) fn unused(root: &YamlNode, cases: &[CaseValues], fields: &Fields<'_>) {
    let Some(first) = cases.first() else { return };
    let known: Vec<&str> = first.values.iter().map(|(name, _)| name.as_str()).filter(|name| *name != NAME).collect();
    let mut used: BTreeSet<String> = BTreeSet::new();
    for entry in root.as_mapping().into_iter().flatten().filter(|entry| entry.key.value != "for") {
        report_unknown(&entry.value, &known, fields);
        placeholders(&entry.value, &mut used);
    }
    for (name, value) in first.values.iter().filter(|(name, _)| name != NAME && !used.contains(name)) {
        let message = msg!("no text in the test uses `{{{{ {} }}}}`", shortened(name));
        let help = "write it where the value belongs, or remove it from the cases";
        fields
            .findings()
            .report(Diagnostic::warning("unused-variable", message, fields.file(), value.span).with_help(help));
    }
}

/// Reports `{{ name }}` for which no case has a value: it would stay unchanged.
fn report_unknown(node: &YamlNode, known: &[&str], fields: &Fields<'_>) {
    match &node.kind {
        NodeKind::Scalar(scalar) => {
            let parts = scalar.text.split("{{").skip(1).filter_map(|part| part.split_once("}}"));
            for name in parts.map(|(name, _)| name.trim()).filter(|name| !known.contains(name)) {
                let message = msg!("no case has a value named `{}`", shortened(name));
                let near = near_miss(name, known.iter().copied());
                let help = near.map_or_else(
                    || Message::word("refer to the values of the cases by name only, as in `{{ name }}`"),
                    |near| msg!("did you mean `{near}`?"),
                );
                fields.error("unknown-name", message, node.span, help);
            }
        }
        NodeKind::Sequence(items) => items.iter().for_each(|item| report_unknown(item, known, fields)),
        NodeKind::Mapping(entries) => entries.iter().for_each(|entry| report_unknown(&entry.value, known, fields)),
    }
}

fn placeholders(node: &YamlNode, found: &mut BTreeSet<String>) {
    let mut collect_from = |text: &str| {
        for part in text.split("{{").skip(1) {
            found.extend(part.split_once("}}").map(|(name, _)| name.trim().to_owned()));
        }
    };
    match &node.kind {
        NodeKind::Scalar(scalar) => collect_from(&scalar.text),
        NodeKind::Sequence(items) => items.iter().for_each(|item| placeholders(item, found)),
        NodeKind::Mapping(entries) => {
            entries.iter().for_each(|entry| collect_from(&entry.key.value));
            entries.iter().for_each(|entry| placeholders(&entry.value, found));
        }
    }
}
