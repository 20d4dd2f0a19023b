//! The configuration of a `behavior_loop`.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;
use std::time::Duration;

use crate::notebook::workflow::Workflow;
use crate::program::exchange::PROMPT_NAMES;
use crate::program::kind::KindChecker;
use crate::program::output::Outputs;
use crate::program::prompt::PromptNames;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::script::time::{ONE_DAY, time};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::text::Text;
use bcc_llm::reply::shape::ReplyShape;

/// The name of the template that asks for actions.
pub const BEHAVIOR: &str = "behavior";

/// The name of the template that asks for a reflection.
pub const REFLECTION: &str = "reflection";

pub(crate) const BEHAVIOR_PROMPT: PromptNames = PromptNames {
    common: &PROMPT_NAMES,
    names: &[
        "observation",
        "target",
        "todo_list",
        "actions",
        "custom_actions",
        "feedback",
        "iteration",
        "behaviors_left",
        "max_actions",
    ],
    outputs: false,
};

pub(crate) const REFLECTION_PROMPT: PromptNames = PromptNames {
    common: &PROMPT_NAMES,
    names: &["observation", "target", "todo_list", "behavior", "feedback", "iteration", "behaviors_left"],
    outputs: false,
};

/// The name of the template with which the server plans for its clients (docs/protocol.md). No action uses it.
pub const WORKFLOW_PLAN: &str = "workflow_plan";

pub(crate) const WORKFLOW_PLAN_PROMPT: PromptNames =
    PromptNames { common: &PROMPT_NAMES, names: &["observation", "target", "level", "iteration"], outputs: false };

/// The prompts about behaviors, in the form that a kind returns.
pub(crate) const PROMPTS: [(&str, PromptNames); 3] =
    [(BEHAVIOR, BEHAVIOR_PROMPT), (REFLECTION, REFLECTION_PROMPT), (WORKFLOW_PLAN, WORKFLOW_PLAN_PROMPT)];

/// The maximum number of items of a todo list in a configuration.
const MAX_ITEMS: usize = 200;

/// The default number of behaviors of a loop.
const DEFAULT_MAX_BEHAVIORS: u32 = 10;

/// The default number of actions of a behavior.
const DEFAULT_MAX_ACTIONS: u32 = 50;

pub(crate) struct LoopConfig {
    /// The target of the step; without it, the goal of the topic.
    pub target: Option<Text>,
    pub source: BehaviorSource,
    /// The initial todo list; without it, the list is not changed.
    pub todo_list: Option<Vec<Text>>,
    /// The variables that the source sees; without it, all that are not sensitive.
    pub variables: Option<Vec<String>>,
    /// The expected number of sections.
    pub total_expected: Option<u32>,
    pub max_behaviors: u32,
    pub max_actions: u32,
    /// Whether each behavior is followed by a reflection.
    pub reflection: bool,
    /// `options.include_progress` of observations.
    pub include_progress: bool,
    /// A plan that replaces the one of the script.
    pub workflow: Option<Workflow>,
    /// How long code may run; without it, the limit of the kernel of the session applies.
    pub timeout: Option<Duration>,
}

pub(crate) enum BehaviorSource {
    Model(Box<ServerRequest>),
    Server(String),
}

pub(crate) struct ServerRequest {
    /// The `N` of `behavior_v<N>.md`.
    pub version: u32,
    /// The `N` of `reflection_v<N>.md`: the same as `version` if that template exists, else 1.
    pub reflection_version: u32,
    pub behavior: ReplyShape,
    pub reflection: ReplyShape,
    /// The outputs of the author: always empty.
    pub outputs: Outputs,
    /// Whether JSON with errors is repaired.
    pub repair: bool,
    /// How often the model is asked again within one call; `None` uses the configuration of the model.
    pub reask: Option<u32>,
}

impl LoopConfig {
    /// Reads the configuration and reports all errors. Returns `None` if there are any.
    pub(crate) fn read(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Self> {
        let before = fields.findings().author_errors();
        let config = Self {
            target: fields.text("target").and_then(|field| checker.text(&field)),
            todo_list: fields.list("todo_list").map(|items| todo_list(items, fields, checker)),
            variables: fields.list("variables").map(|items| names(items, fields, checker)),
            total_expected: fields.integer("total_expected", 1..=1_000),
            max_behaviors: fields.integer("max_behaviors", 1..=100).unwrap_or(DEFAULT_MAX_BEHAVIORS),
            max_actions: fields.integer("max_actions", 1..=500).unwrap_or(DEFAULT_MAX_ACTIONS),
            reflection: fields.choice("reflection", &["on", "off"]) != Some("off"),
            include_progress: fields.boolean("include_progress").unwrap_or_default(),
            workflow: fields.take("workflow").and_then(|node| workflow(node, fields)),
            timeout: time(fields, "timeout", ONE_DAY),
            source: source(fields, checker)?,
        };
        (fields.findings().author_errors() == before).then_some(config)
    }
}

fn source(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<BehaviorSource> {
    let version = fields.integer("version", 1..=999);
    let repair = fields.choice("repair", &["on", "off"]) != Some("off");
    let reask = fields.integer("reask", 0..=5);
    let server = fields.name("server");
    let source = fields.choice("source", &["model", "server"]);
    match (source, server) {
        (Some("model"), Some(server)) => {
            let message = "`server` names a behavior server, but `source` selects the model";
            let help = "remove one of the two";
            fields
                .findings()
                .report(Diagnostic::error("not-a-choice", message, fields.file(), server.span).with_help(help));
            None
        }
        (Some("server"), None) => {
            let message = "`source: server` does not name a server";
            let help = "add `server: NAME`, with the name of a `[behavior_servers.NAME]` in bcc-script.toml";
            let span = fields.take("source").map_or(fields.span(), |node| node.span);
            fields.findings().report(Diagnostic::error("missing-key", message, fields.file(), span).with_help(help));
            None
        }
        (_, Some(server)) => Some(BehaviorSource::Server(server.value)),
        (_, None) => {
            let version = version.unwrap_or(1);
            let reflection_version = if checker.has_template(REFLECTION, version) { version } else { 1 };
            checker.template(BEHAVIOR, version, BEHAVIOR_PROMPT, fields);
            checker.template(REFLECTION, reflection_version, REFLECTION_PROMPT, fields);
            let mut shape = |name, version| {
                let base = checker.reply_schema(name, version, fields)?;
                // Errors in a schema that a template names are reported there; the built-in schemas are valid.
                ReplyShape::with_base(&base, vec![]).ok()
            };
            Some(BehaviorSource::Model(Box::new(ServerRequest {
                version,
                reflection_version,
                behavior: shape(BEHAVIOR, version)?,
                reflection: shape(REFLECTION, reflection_version)?,
                outputs: Outputs::new(vec![]),
                repair,
                reask,
            })))
        }
    }
}

fn todo_list(items: &[Arc<YamlNode>], fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Vec<Text> {
    if let Some(item) = items.get(MAX_ITEMS) {
        let message = msg!("`todo_list` has more than {MAX_ITEMS} items");
        let help = "combine several of them, or move them into separate loops";
        fields.findings().report(Diagnostic::error("out-of-range", message, fields.file(), item.span).with_help(help));
    }
    let text = |item: &Arc<YamlNode>| {
        let Some(scalar) = item.as_scalar() else {
            let message = msg!("an item of `todo_list` must be text, but this is {}", item.describe());
            fields.findings().report(Diagnostic::error("wrong-type", message, fields.file(), item.span));
            return None;
        };
        checker.text(&TextField { text: scalar.text.clone(), node: Arc::clone(item) })
    };
    items.iter().filter_map(text).collect()
}

fn names(items: &[Arc<YamlNode>], fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Vec<String> {
    let name = |item: &Arc<YamlNode>| {
        let Some(scalar) = item.as_scalar() else {
            let message = msg!("`variables` must list variable names, but this is {}", item.describe());
            fields.findings().report(Diagnostic::error("wrong-type", message, fields.file(), item.span));
            return None;
        };
        checker.require_known(&Spanned { value: scalar.text.clone(), span: item.span });
        Some(scalar.text.clone())
    };
    items.iter().filter_map(name).collect()
}

/// Reads and checks the plan of an author.
fn workflow(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<Workflow> {
    let report = |message: Message| {
        let help = "write `workflow: { name: …, stages: [{ id: …, name: …, steps: [{ id: …, name: …, goal: … }] }] }`";
        fields.findings().report(Diagnostic::error("wrong-type", message, fields.file(), node.span).with_help(help));
    };
    let Ok(plan) = Workflow::read(&node.to_json()) else {
        report(msg!("`workflow` must be a plan of stages with steps, but this is {}", node.describe()));
        return None;
    };
    if let Err(rejection) = plan.check() {
        report(msg!("`workflow` is not a valid plan: {}", rejection.message));
        return None;
    }
    Some(plan)
}
