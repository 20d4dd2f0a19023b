//! Reads a YAML tree into a [`Script`]: types, required and unknown keys, legacy spellings.

use crate::message::message::Message;
use crate::message::msg;
use std::cell::RefCell;
use std::sync::Arc;

use crate::script::declare::declare;
use crate::script::examples::example;
use crate::script::fields::{Fields, TextField, is_null, shortened};
use crate::script::findings::Findings;
use crate::script::foreign::{foreign_document, foreign_json};
use crate::script::interrupted::on_interrupted;
use crate::script::kernel::kernel;
use crate::script::legacy::nesting::convert_oldest_nesting;
use crate::script::legacy::technique::older_skill_form;
use crate::script::legacy_fields::current_spelling;
use crate::script::limits::{budget, for_each, spanned, strategy};
use crate::script::misplaced::misplaced;
use crate::script::missing_root::missing_root_key;
use crate::script::report::report;
use crate::script::route_parser::{on_change, on_exit, triggers};
use crate::script::script::{AnswerTables, History, RawAction, Script, WrittenPhase, WrittenTopic};
use crate::script::skill::{WrittenSkill, skill, skills, technique};
use crate::script::step_options::{StepOptions, step_options};
use crate::script::test::test::{WrittenTest, test};
use crate::script::tools::tools;
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::misreading::{fix_for, help_for};
use crate::source::near::near_miss;
use crate::source::span::Spanned;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlNode};
use crate::workflow::read::state_file;
use crate::workflow::start::{EarlierProgress, earlier_progress};
use crate::workflow::state_file::StateFile;
use crate::workflow::translate::script_tree;

/// The maximum length of an id, in characters.
const LONGEST_ID: usize = 100;

/// The document in a file (docs/language.md "The file").
#[derive(Clone, Debug)]
pub enum ScriptDocument {
    /// A script that can be run.
    Session(Box<Script>),
    /// A skill, in the current or the legacy form.
    Skill(Box<WrittenSkill>),
    Test(Box<WrittenTest>),
    /// A workflow state file, as the script that it stands for; none if it cannot be checked further.
    Workflow(Option<Box<Script>>),
}

/// The root keys of documents, each with a description of the file for messages.
const DOCUMENTS: [(&str, &str); 5] = [
    ("session", "a script"),
    ("skill", "a skill: it is called by scripts and cannot be run alone"),
    ("technique_id", "a skill in the legacy form: it is called by scripts and cannot be run alone"),
    ("workflow_id", "a workflow state file"),
    ("test", "a conversation test: run it with `bcc-script test`"),
];

/// The kind of document, as the key at its root.
pub fn root_key(root: &YamlNode) -> Option<&'static str> {
    let entries = root.as_mapping()?;
    let has = |key: &str| entries.iter().any(|entry| entry.key.value == key);
    DOCUMENTS.iter().map(|(key, _)| *key).find(|key| has(key))
}

/// Reads the `session:` script of a parsed file, or a state file with its progress. Errors are reported; `None` if nothing can be checked
/// further.
pub fn read(file: &Arc<SourceFile>, root: &YamlNode, findings: &Findings) -> Option<Script> {
    if is_workflow(root) {
        let state = state_file(file, root, findings)?;
        return Some(Script { earlier: earlier_progress(&state), ..workflow_script(&state, findings)? });
    }
    if let Some(key) = root_key(root).filter(|key| *key != "session")
        && let Some(entry) = root.as_mapping().into_iter().flatten().find(|entry| entry.key.value == key)
    {
        let what = DOCUMENTS.iter().find(|(other, _)| *other == key).map_or("", |(_, what)| *what);
        let message = msg!("this file is {what}", what = Message::word(what));
        let help = "run a file that begins with `session:`";
        findings.report(Diagnostic::error("not-a-session", message, file, entry.key.span).with_help(help));
        return None;
    }
    match document(file, root, findings)? {
        ScriptDocument::Session(script) => Some(*script),
        _ => None,
    }
}

/// Reads the document of a parsed file. A file without a root key is treated as a script.
pub fn document(file: &Arc<SourceFile>, root: &YamlNode, findings: &Findings) -> Option<ScriptDocument> {
    let NodeKind::Mapping(_) = &root.kind else {
        let message = msg!("a script must be a mapping that starts with `session:`, but this is {}", root.describe());
        let help = help_for(file, root)
            .unwrap_or_else(|| msg!("start with a line `session:`, and indent everything else below it"));
        let diagnostic = Diagnostic::error("wrong-type", message, file, root.span).with_help(help);
        findings.report(diagnostic.with_fixes(fix_for(file, root)));
        return None;
    };
    let what = match root_key(root) {
        Some("skill" | "technique_id") => "a skill file",
        Some("test") => "a test",
        Some("workflow_id") => {
            let state = state_file(file, root, findings);
            let script = state.and_then(|state| workflow_script(&state, findings));
            return Some(ScriptDocument::Workflow(script.map(Box::new)));
        }
        Some(_) => "a script",
        None => {
            let other = convert_oldest_nesting(file, root).or_else(|| missing_root_key(file, root));
            if let Some(diagnostic) =
                other.or_else(|| foreign_document(file, root)).or_else(|| foreign_json(file, root))
            {
                findings.report(diagnostic);
                return None;
            }
            "a script"
        }
    };
    let fields = Fields::of(root, what, file, findings)?;
    fields.ignore("metadata");
    let document = match root_key(root) {
        Some("skill") => {
            fields.required("skill").and_then(|node| skill(node, &fields)).map(Box::new).map(ScriptDocument::Skill)
        }
        Some("technique_id") => {
            findings.extend(older_skill_form(file, root));
            technique(&fields).map(Box::new).map(ScriptDocument::Skill)
        }
        Some("test") => test(root, &fields).map(Box::new).map(ScriptDocument::Test),
        _ => fields
            .required("session")
            .and_then(|node| session_script(node, file, findings))
            .map(Box::new)
            .map(ScriptDocument::Session),
    };
    let is_script = root_key(root).is_none_or(|key| key == "session");
    fields.finish_with(|key| {
        let of_session = is_script && SESSION_KEYS.contains(&key);
        of_session.then(|| msg!("indent it and what belongs to it: `{key}` belongs under `session:`"))
    });
    document
}

/// Whether the root of a file is that of a workflow state file.
pub fn is_workflow(root: &YamlNode) -> bool {
    root_key(root) == Some("workflow_id")
}

/// Whether the root of a file is that of a state of the behavior protocol (docs/protocol.md, "State files").
pub fn is_protocol_state(root: &YamlNode) -> bool {
    let is_object = |key: &str| root.get(key).is_some_and(|node| node.as_mapping().is_some());
    root_key(root).is_none()
        && (is_object("observation") || is_object("location") && (is_object("context") || is_object("state")))
}

/// The script that a state file stands for.
fn workflow_script(state: &StateFile, findings: &Findings) -> Option<Script> {
    let tree = script_tree(state);
    session_script(tree.get("session")?, &state.file, findings)
}

/// The keys of a session that are often written at the start of a line.
const SESSION_KEYS: [&str; 12] = [
    "session_id",
    "session_name",
    "template_scheme",
    "global_goal",
    "declare",
    "phases",
    "skills",
    "triggers",
    "on_exit",
    "hear",
    "on_change",
    "budget",
];

fn session_script(node: &YamlNode, file: &Arc<SourceFile>, findings: &Findings) -> Option<Script> {
    let fields = Fields::of(node, "`session`", file, findings)?;
    let id = id(&fields, "session_id");
    let name = fields.text("session_name").map(|words| words.text);
    let scheme = fields.name("template_scheme");
    let goal = fields.text("global_goal");
    let who = fields.text("who").map(|words| words.text);
    let user = fields.text("user").map(|words| words.text);
    let model = fields.name("model");
    let history = history(&fields);
    let declare = declare(&fields);
    let (budget, kernel, on_exit) = (budget(&fields), kernel(&fields), on_exit(&fields));
    let answer_tables = answer_tables(&fields);
    let (report, tools) = (report(&fields), tools(&fields));
    let (triggers, skills) = (triggers(&fields, self::id), skills(&fields));
    let phases = items(&fields, "phases", phase);
    fields.finish();
    Some(Script {
        file: Arc::clone(file),
        id,
        name,
        scheme,
        goal,
        who,
        user,
        model,
        history,
        declare,
        budget,
        kernel,
        report,
        tools,
        on_exit,
        answer_tables,
        triggers,
        skills,
        phases,
        earlier: EarlierProgress::default(),
    })
}

fn history(fields: &Fields<'_>) -> History {
    let mut history = History::default();
    let Some(node) = fields.take("history") else { return history };
    let Some(inner) = fields.inner(node, "`history`") else { return history };
    history.economical = false;
    if let Some(messages) = inner.integer("messages", 1..=1000) {
        history.messages = messages;
    }
    if let Some(chars) = inner.integer("chars", 100..=600_000) {
        history.chars = chars;
    }
    inner.finish();
    history
}

fn phase(node: &YamlNode, file: &Arc<SourceFile>, findings: &Findings) -> Option<WrittenPhase> {
    let fields = Fields::of(node, "a phase", file, findings)?;
    if misplaced(&fields, "phase") == Some("topic") {
        // It is checked as a topic, in a phase of its own.
        let id = Spanned { value: String::new(), span: node.span };
        let topics = topic(node, file, findings).into_iter().collect();
        let (name, goal, condition, on_exit, declare) = (None, None, None, None, vec![]);
        let answer_tables = AnswerTables::default();
        return Some(WrittenPhase { id, name, goal, declare, condition, on_exit, answer_tables, topics });
    }
    let id = id(&fields, "phase_id");
    let name = fields.text("phase_name").map(|words| words.text);
    let goal = fields.text("phase_goal");
    let declare = declare(&fields);
    let condition = condition(&fields);
    let (on_exit, answer_tables) = (on_exit(&fields), answer_tables(&fields));
    let topics = items(&fields, "topics", topic);
    fields.finish();
    Some(WrittenPhase { id, name, goal, declare, condition, on_exit, answer_tables, topics })
}

pub(crate) fn topic(node: &YamlNode, file: &Arc<SourceFile>, findings: &Findings) -> Option<WrittenTopic> {
    let fields = Fields::of(node, "a topic", file, findings)?;
    if misplaced(&fields, "topic").is_some() {
        return Some(WrittenTopic::unread(node));
    }
    let id = id(&fields, "topic_id");
    let name = fields.text("topic_name").map(|words| words.text);
    let goal = fields.text("topic_goal");
    let declare = declare(&fields);
    let condition = condition(&fields);
    let strategy = strategy(&fields);
    let (on_exit, answer_tables) = (on_exit(&fields), answer_tables(&fields));
    let for_each = for_each(&fields);
    let time_budget = spanned(&fields, "time_budget", 1..=10_000);
    let priority = fields.choice("priority", &["high", "medium", "low"]);
    let priority = priority.zip(fields.take("priority")).map(|(value, node)| Spanned { value, span: node.span });
    let actions = items(&fields, "actions", action);
    let finally = if fields.has_field("finally") { items(&fields, "finally", action) } else { vec![] };
    fields.finish();
    Some(WrittenTopic {
        id,
        name,
        goal,
        declare,
        condition,
        on_exit,
        answer_tables,
        strategy,
        time_budget,
        priority,
        for_each,
        actions,
        finally,
    })
}

/// Reads one action of a list of actions.
pub fn action(node: &YamlNode, file: &Arc<SourceFile>, findings: &Findings) -> Option<RawAction> {
    let fields = Fields::of(node, "an action", file, findings)?;
    if misplaced(&fields, "action").is_some() {
        return Some(RawAction::unread(node));
    }
    let kind = fields.required_text("action_type").map(|words| Spanned { value: words.text, span: words.node.span });
    // A missing value is rejected above; an empty text, as in `''` or after a tag, is not a kind either.
    if let Some(kind) = kind.as_ref().filter(|kind| kind.value.is_empty()) {
        let diagnostic = Diagnostic::error("missing-key", "`action_type` of an action is empty", file, kind.span);
        findings.report(diagnostic.with_help(example("action_type").unwrap_or_default()));
    }
    let id = id(&fields, "action_id");
    let condition = condition(&fields);
    let on_exit = on_exit(&fields);
    let on_interrupted = on_interrupted(&fields);
    let options = step_options(&fields);
    let compensate = if fields.has_field("compensate") { items(&fields, "compensate", action) } else { vec![] };
    let config = fields.take("config").filter(|node| !is_null(node)).map(Arc::clone);
    let sibling_keys = RefCell::new(Vec::new());
    fields.finish_with(|key| {
        let action_keys =
            ["action_type", "action_id", "condition", "config", "on_exit", "on_interrupted", "compensate"];
        let foreign = near_miss(key, action_keys.into_iter().chain(StepOptions::NAMES)).is_none();
        foreign.then(|| sibling_keys.borrow_mut().push(key.to_owned()));
        foreign.then(|| msg!("the fields of the action type go under `config:`; custom fields start with `x-`"))
    });
    // If the kind is missing, the values are still searched for the names that they set.
    let kind = kind.unwrap_or_else(|| Spanned { value: String::new(), span: node.span });
    let beside = sibling_keys.into_inner();
    Some(RawAction {
        kind,
        id,
        condition,
        on_exit,
        on_interrupted,
        options,
        compensate,
        config,
        sibling_keys: beside,
        span: node.span,
    })
}

/// Reads `hear` and `on_change`.
fn answer_tables(fields: &Fields<'_>) -> AnswerTables {
    let hear = fields.list("hear").map(<[_]>::to_vec).unwrap_or_default();
    AnswerTables { hear, on_change: on_change(fields) }
}

fn condition(fields: &Fields<'_>) -> Option<TextField> {
    fields.text("condition")
}

/// Reads every item of a list that must not be empty. Invalid items are reported and left out, so that the others are
/// still checked.
pub(crate) fn items<T>(
    fields: &Fields<'_>,
    name: &'static str,
    read: fn(&YamlNode, &Arc<SourceFile>, &Findings) -> Option<T>,
) -> Vec<T> {
    let items = fields.required_list(name).unwrap_or_default();
    items.iter().filter_map(|item| read(item, fields.file(), fields.findings())).collect()
}

/// A required id: letters of any script, digits, `_`, `.` and `-`. An invalid id is reported and still returned, so that its
/// part is checked too; a missing one is empty.
pub fn id(fields: &Fields<'_>, name: &'static str) -> Spanned<String> {
    let Some(words) = fields.required_text(name) else { return Spanned { value: String::new(), span: fields.span() } };
    let id = Spanned { value: words.text, span: words.node.span };
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let length = id.value.chars().count();
    if length == 0 || length > LONGEST_ID || !id.value.chars().all(allowed) {
        let message = match length {
            0 => msg!("`{name}` is empty"),
            _ => msg!("`{}` cannot be used as `{name}`", shortened(&id.value)),
        };
        let help = msg!("ids are 1 to {LONGEST_ID} characters long: letters (of any script), digits, `_`, `.` and `-`");
        let diagnostic = Diagnostic::error("invalid-id", message, fields.file(), id.span).with_help(help);
        let invisible = id.value.chars().find(|c| is_invisible(*c)).map(|c| without_invisible(diagnostic.clone(), c));
        fields.findings().report(invisible.unwrap_or(diagnostic));
    }
    id
}

/// Whether the character is invisible or looks like an ordinary space.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{3000}' | '\u{feff}')
}

/// Reports that an id contains an invisible character, with the fix that removes it.
fn without_invisible(mut diagnostic: Diagnostic, invisible: char) -> Diagnostic {
    let written: String = diagnostic.file.slice(diagnostic.span).chars().filter(|c| !is_invisible(*c)).collect();
    diagnostic.message =
        msg!("`{}` contains an invisible character: U+{:04X}", shortened(&written), u32::from(invisible));
    let valid = !written.is_empty() && written.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let span = diagnostic.span;
    let diagnostic = diagnostic.with_help("delete it: retype the id, or the end of it");
    if valid { diagnostic.with_fix("remove the character", vec![Edit::replace(span, written)]) } else { diagnostic }
}

/// The `template_scheme` of a parsed script, if there is one: the templates must be known before the script can be checked
/// against them. Problems of the script are not reported here.
pub fn scheme(root: &YamlNode) -> Option<Spanned<String>> {
    let session = root.as_mapping()?.iter().find(|entry| entry.key.value == "session")?;
    let is_scheme = |key: &str| key == "template_scheme" || current_spelling(key).as_deref() == Some("template_scheme");
    let scheme = session.value.as_mapping()?.iter().find(|entry| is_scheme(&entry.key.value))?;
    let scalar = scheme.value.as_scalar().filter(|_| !is_null(&scheme.value))?;
    Some(Spanned { value: scalar.text.clone(), span: scheme.value.span })
}

/// The paths in `skills` of a parsed script: the skills must be known before the script can be checked against them.
pub fn skill_paths(root: &YamlNode) -> Vec<&str> {
    let items = root.get("session").and_then(|session| session.get("skills")).and_then(|skills| skills.as_sequence());
    items.into_iter().flatten().filter_map(|item| item.as_scalar()).map(|scalar| scalar.text.as_str()).collect()
}

/// The path of the script that a parsed test is for.
pub fn tested_script(root: &YamlNode) -> Option<&str> {
    (root_key(root) == Some("test"))
        .then(|| root.get("script")?.as_scalar().map(|scalar| scalar.text.as_str()))
        .flatten()
}
