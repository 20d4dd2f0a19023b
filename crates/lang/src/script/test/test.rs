//! A conversation test (docs/tests.md), as written.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::script::fields::{Fields, TextField};
use crate::script::findings::Findings;
use crate::script::limits::{WrittenBudget, budget};
use crate::script::test::cases::{CaseValues, cases, filled, unused};
use crate::script::test::dialogue::{DialogueStep, Persona, item, persona};
use crate::script::test::effects::{CommandResults, commands, files};
use crate::script::test::expect::{Expect, expect};
use crate::script::test::replies::{Model, Replies, model, monitor};
use crate::script::test::snapshot::{SnapshotSetting, snapshot};
use crate::script::test::text_expectation::TextExpectation;
use crate::script::test::time::moment;
use crate::script::test::tools::{TestTool, tools};
use crate::source::span::Spanned;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlNode};
use crate::value::exact::ExactValue;

/// The maximum number of cases of one test that are checked before it runs; each is read again when it runs.
pub const MAX_CHECKED_CASES: usize = 200;

/// The default number of turns of a conversation.
pub(crate) const DEFAULT_TURNS: u32 = 200;

/// The fields at the root of a test.
const FIELDS: [&str; 19] = [
    "script", "model", "monitor", "vars", "user_id", "scheme", "clock", "seed", "budget", "turns", "strict", "user",
    "for", "dialogue", "expect", "snapshot", "commands", "files", "tools",
];

/// A test, or one case of it.
#[derive(Clone, Debug)]
pub struct WrittenTest {
    /// `test`: what the test shows, as a sentence.
    pub name: Option<TextField>,
    /// `script`: the path of the script, relative to this file.
    pub script: Option<Spanned<String>>,
    /// `model`: the model that replies; by default the offline responder.
    pub model: Option<Model>,
    pub monitor: Vec<Replies>,
    /// Whether monitors run at all.
    pub monitors: bool,
    /// `vars`: variables that have a value from the start.
    pub vars: Vec<(Spanned<String>, ExactValue)>,
    /// `user_id`: the user whose global variables the session reads.
    pub user_id: Option<String>,
    /// `scheme`: the scheme of prompt templates, instead of the script's own.
    pub scheme: Option<Spanned<String>>,
    /// `clock`: the start of the clock.
    pub clock: Option<Timestamp>,
    /// `seed`: the seed of everything random.
    pub seed: Option<u32>,
    /// `budget`: instead of the script's own.
    pub budget: Option<WrittenBudget>,
    /// `turns`: the maximum number of turns of the conversation.
    pub turns: u32,
    /// `strict`: whether messages that are not checked and replies that are not used are failures.
    pub strict: bool,
    /// `user`: a simulated person, who continues after the dialogue.
    pub persona: Option<Persona>,
    pub dialogue: Vec<DialogueStep>,
    /// `snapshot`: the parts of the conversation that are compared with their stored form, and the position of the field.
    pub snapshot: Option<Spanned<Vec<SnapshotSetting>>>,
    /// `commands`: the results of actions that run programs. No program runs.
    pub commands: Vec<CommandResults>,
    /// `tools`: the results of tools. No tool is called.
    pub tools: Vec<TestTool>,
    /// `files`: the files that actions find, by path. No other file is read or written.
    pub files: Vec<(Spanned<String>, String)>,
    /// `expect`: what must hold at the end.
    pub expect: Option<Expect>,
}

/// A name in an expectation.
#[derive(Clone, Debug)]
pub enum Expected<'t> {
    Variable(&'t Spanned<String>),
    ExitReason(&'t Spanned<String>),
    /// The id of an action, topic or phase where the conversation should be.
    Location(&'t Spanned<String>),
    Action(&'t Spanned<String>),
    /// What takes a route: an exit reason, or a trigger.
    Route(&'t Spanned<String>),
}

impl WrittenTest {
    /// Every `expect`, with the final one last.
    pub fn expects(&self) -> impl Iterator<Item = &Expect> {
        let steps = self.dialogue.iter().filter_map(|step| match step {
            DialogueStep::Expect(expect) => Some(expect.as_ref()),
            _ => None,
        });
        steps.chain(&self.expect)
    }

    /// The names in the expectations that the script should define.
    pub fn expected(&self) -> Vec<Expected<'_>> {
        let mut expected = Vec::new();
        for step in &self.dialogue {
            match step {
                DialogueStep::Ai(wording) => expected.extend(wording.actions().into_iter().map(Expected::Action)),
                DialogueStep::Decide(decide) => expected.extend(decide.step.iter().map(Expected::Action)),
                _ => {}
            }
        }
        for expect in self.expects() {
            expected.extend(expect.variables.iter().map(|(name, _)| Expected::Variable(name)));
            expected.extend(expect.exit_reason.iter().map(|(_, reason)| Expected::ExitReason(reason)));
            let actions =
                expect.exit_reason.iter().chain(&expect.progress_suggestion).filter_map(|(id, _)| id.as_ref());
            expected.extend(actions.map(Expected::Action));
            expected.extend(expect.location.iter().map(Expected::Location));
            expected.extend(expect.routes.iter().map(|(reason, _)| Expected::Route(reason)));
            let counts = expect.model_calls.iter().chain(&expect.attempts).flat_map(|counts| &counts.by);
            expected.extend(counts.map(|(asker, _)| Expected::Action(asker)));
            expected.extend(expect.prompt.iter().filter_map(|(id, _)| id.as_ref()).map(Expected::Action));
            expected.extend(
                expect.monitor_feedback.iter().filter_map(|feedback| feedback.action.as_ref()).map(Expected::Action),
            );
            expected.extend(expect.messages.iter().flat_map(TextExpectation::actions).map(Expected::Action));
        }
        expected
    }

    /// The replies of models and monitors.
    pub fn replies(&self) -> impl Iterator<Item = &Replies> {
        let scripted = match &self.model {
            Some(Model::Scripted { replies, .. }) => replies.as_slice(),
            _ => &[],
        };
        scripted.iter().chain(&self.monitor)
    }
}

/// Reads the test whose root has these fields. For a test with `for`, returns the first case; the problems of all cases are
/// reported, each of them once.
pub fn test(root: &YamlNode, fields: &Fields<'_>) -> Option<WrittenTest> {
    FIELDS.iter().for_each(|name| fields.ignore(name));
    fields.ignore("test");
    let (file, findings) = (fields.file(), fields.findings());
    let Some(cases) = cases(root, file, findings) else { return read(root, file, findings) };
    unused(root, &cases, fields);
    let (mut first, mut reported) = (None, HashSet::new());
    for case in cases.iter().take(MAX_CHECKED_CASES) {
        let case_findings = Findings::new();
        let test = read(&filled(root, case), file, &case_findings);
        first = first.or(test);
        for diagnostic in case_findings.into_vec() {
            if reported.insert((diagnostic.rule, diagnostic.span, diagnostic.message.clone())) {
                findings.report(diagnostic);
            }
        }
    }
    // If no case could be read, the parts that do not depend on the cases still can be.
    first.or_else(|| read(root, file, &Findings::new()))
}

/// Reads one case; `None` for the test itself, which has no cases.
pub fn read_case(
    root: &YamlNode,
    case: Option<&CaseValues>,
    file: &Arc<SourceFile>,
    findings: &Findings,
) -> Option<WrittenTest> {
    match case {
        Some(case) => read(&filled(root, case), file, findings),
        None => read(root, file, findings),
    }
}

fn read(root: &YamlNode, file: &Arc<SourceFile>, findings: &Findings) -> Option<WrittenTest> {
    let fields = Fields::of(root, "a test", file, findings)?;
    let name = fields.required_text("test");
    let script = fields.required_text("script").map(|words| Spanned { value: words.text, span: words.node.span });
    let model = model(&fields);
    let (monitor, monitors) = monitor(&fields);
    let has_monitor = |replies: &&Replies| replies.asker.written().starts_with("monitor:");
    let monitors = monitors
        || matches!(&model, Some(Model::Scripted { replies, .. }) if replies.iter().any(|replies| has_monitor(&replies)));
    let persona = fields.take("user").and_then(|node| persona(node, &fields));
    let mut dialogue = Vec::new();
    let items = if persona.is_some() && !fields.has("dialogue") { None } else { fields.required_list("dialogue") };
    for written in items.unwrap_or_default() {
        item(written, &fields, &mut dialogue);
    }
    // The written steps come first; then the simulated person continues.
    dialogue.extend(persona.iter().cloned().map(Box::new).map(DialogueStep::Persona));
    let test = WrittenTest {
        name,
        script,
        model,
        monitor,
        monitors,
        vars: vars(&fields),
        user_id: fields.text("user_id").map(|words| words.text),
        scheme: fields.name("scheme"),
        clock: moment(&fields, "clock"),
        seed: fields.integer("seed", 0..=u32::MAX),
        budget: budget(&fields),
        turns: fields.integer("turns", 1..=10_000).unwrap_or(DEFAULT_TURNS),
        strict: if fields.has("strict") { fields.boolean("strict").unwrap_or(false) } else { false },
        persona,
        dialogue,
        snapshot: snapshots(&fields),
        commands: commands(&fields),
        tools: tools(&fields),
        files: files(&fields),
        expect: fields.take("expect").and_then(|node| expect(node, &fields)),
    };
    Some(test)
}

fn snapshots(fields: &Fields<'_>) -> Option<Spanned<Vec<SnapshotSetting>>> {
    let span = fields.take("snapshot")?.span;
    Some(Spanned { value: snapshot(fields), span })
}

fn vars(fields: &Fields<'_>) -> Vec<(Spanned<String>, ExactValue)> {
    let Some(node) = fields.take("vars") else { return vec![] };
    match &node.kind {
        NodeKind::Mapping(entries) => entries.iter().map(|entry| (entry.key.clone(), entry.value.to_exact())).collect(),
        _ => {
            fields.report_wrong_type(
                "vars",
                "a mapping of names to values",
                node,
                "write each on a line of its own, as `user_name: 小林`",
            );
            vec![]
        }
    }
}
