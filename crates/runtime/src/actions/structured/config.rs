//! The configuration of an `ai_act`.

use bcc_lang::message::msg;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;

use crate::actions::conversation::config::{ModelConfig, model_config};
use crate::actions::plans::bound::plan_number;
use crate::actions::plans::prompts::{PLAN_PROMPTS, PlanPrompts};
use crate::actions::structured::instruction::PermittedOperations;
use crate::actions::structured::operations::{OPERATIONS, OperationInfo};
use crate::effects::tools::matches;
use crate::program::assigned::Assigned;
use crate::program::assignments::read_value;
use crate::program::exchange::PROMPT_NAMES;
use crate::program::kind::{ActionProperties, KindChecker};
use crate::program::program::{Program, ProgramSteps};
use crate::program::prompt::PromptNames;
use crate::program::tool_rule::ToolRule;
use bcc_lang::expr::parse::Expr;
use bcc_lang::template::text::Text;
use serde_json::{Map, Value};

/// The name of the template, and of the schema of its replies.
pub(crate) const STRUCTURED_ACTIONS: &str = "structured_actions";

const PROMPT: PromptNames = PromptNames {
    common: &PROMPT_NAMES,
    names: &["goal", "operations", "plan_outline", "results", "asks_left", "recent_tool_results"],
    outputs: false,
};

/// The prompts of the kind.
pub(crate) const PROMPTS: [(&str, PromptNames); 4] = {
    let [create, decompose, task] = PLAN_PROMPTS;
    [(STRUCTURED_ACTIONS, PROMPT), create, decompose, task]
};

const MAX_ROUNDS: u32 = 50;

/// An `ai_act` of the author.
pub(crate) struct ActConfig {
    pub model: ModelConfig,
    pub content: Text,
    pub goal: Option<Text>,
    pub tone: Option<Text>,
    /// Whether it waits for the person before it asks the model.
    pub listens: bool,
    pub max_rounds: u32,
    pub until: Option<Expr>,
    /// The plan that the operations work on, unless they name another one.
    pub plan: Option<Assigned>,
    pub operations: Vec<&'static OperationInfo>,
    /// The tools, if not all that the script permits.
    pub tools: Option<Vec<String>>,
    pub plans: PlanPrompts,
    /// The steps that run one task of a plan.
    pub task_steps: ProgramSteps,
}

impl ActConfig {
    /// Reads the config, and describes the action. All problems are reported.
    pub(crate) fn read(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Self> {
        let before = fields.findings().author_errors();
        let content = fields.required_content("content").and_then(|field| checker.text(&field));
        let goal = fields.text("goal").and_then(|field| checker.text(&field));
        let tone = fields.text("tone").and_then(|field| checker.text(&field));
        let listens = fields.choice("opening", &["ask", "listen"]) == Some("listen");
        let max_rounds = fields.integer("max_rounds", 1..=MAX_ROUNDS).unwrap_or(1);
        let until = fields.text("until").and_then(|field| checker.expression(&field));
        let plan = fields.take("plan").and_then(|node| {
            let plan = read_value(node, checker)?;
            if let Assigned::Literal(number) = &plan
                && !number.is_null()
                && plan_number(number).is_none()
            {
                let message = msg!("`plan` of {} must be the number of a plan", fields.subject());
                let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), node.span);
                fields
                    .findings()
                    .report(diagnostic.with_help("write a number, or a variable that has one: `plan: \"{{ plan }}\"`"));
                return None;
            }
            Some(plan)
        });
        let operations = operations(fields);
        let has_tools = fields.has("tools");
        let tools = fields.texts("tools").into_iter().map(|field| field.text).collect();
        let tools = has_tools.then_some(tools);
        let model = model_config(STRUCTURED_ACTIONS, PROMPT, None, fields, checker);
        let plans = PlanPrompts::read(fields, checker);
        checker.describe(ActionProperties {
            max_rounds,
            needs_answer: listens || max_rounds > 1 && until.is_none(),
            min_calls: 1,
            ..ActionProperties::default()
        });
        if fields.findings().author_errors() > before {
            return None;
        }
        let plans = plans?;
        let task_steps = plans.task_steps(tools.clone());
        let (model, content) = (model?, content?);
        Some(Self {
            model,
            content,
            goal,
            tone,
            listens,
            max_rounds,
            until,
            plan,
            operations,
            tools,
            plans,
            task_steps,
        })
    }

    /// The tool that the task with these parameters would call, if the action does not permit it. Without `tools`, who runs the task decides.
    pub(crate) fn forbidden_tool(&self, parameters: &Map<String, Value>) -> Option<String> {
        let patterns = self.tools.as_ref()?;
        let tool = parameters.get("metadata")?.get("tool")?;
        let tool = tool.get("name").unwrap_or(tool).as_str()?.trim();
        let is_permitted = patterns.iter().any(|pattern| matches(pattern, tool));
        (!is_permitted).then(|| tool.to_owned())
    }

    /// What the action permits in this program.
    pub(crate) fn permissions<'a>(&'a self, program: &'a Program) -> ActPermissions<'a> {
        ActPermissions { config: self, rules: &program.tools }
    }
}

/// The operations and tools that an `ai_act` permits.
pub(crate) struct ActPermissions<'a> {
    config: &'a ActConfig,
    rules: &'a [ToolRule],
}

impl PermittedOperations for ActPermissions<'_> {
    fn allows(&self, operation: &OperationInfo) -> bool {
        self.config.operations.iter().any(|permitted| permitted.name == operation.name)
    }

    fn allows_tool(&self, name: &str) -> bool {
        let is_listed = |patterns: &Vec<String>| patterns.iter().any(|pattern| matches(pattern, name));
        ToolRule::of(self.rules, name).is_some() && self.config.tools.as_ref().is_none_or(is_listed)
    }

    fn names(&self) -> Vec<String> {
        let operations = self.config.operations.iter().map(|operation| operation.name.to_owned());
        let is_literal = |rule: &&ToolRule| !rule.pattern.ends_with('*') && self.allows_tool(&rule.pattern);
        operations.chain(self.rules.iter().filter(is_literal).map(|rule| rule.pattern.clone())).collect()
    }
}

/// Reads `operations`; without it, all that need not be listed.
fn operations(fields: &Fields<'_>) -> Vec<&'static OperationInfo> {
    let is_listed = fields.has("operations");
    let written = fields.texts("operations");
    if !is_listed {
        return OPERATIONS.iter().filter(|operation| !operation.must_be_listed).collect();
    }
    let mut listed: Vec<&'static OperationInfo> = Vec::new();
    for field in written {
        match OperationInfo::of(&field.text) {
            Some(operation) if listed.iter().any(|other| other.name == operation.name) => {
                let message = msg!("`operations` lists `{}` twice", operation.name);
                fields.error("duplicate-id", message, field.node.span, "remove one of the two");
            }
            Some(operation) => listed.push(operation),
            None => {
                let message = msg!("there is no operation `{}`", field.text);
                let diagnostic = Diagnostic::error("not-a-choice", message, fields.file(), field.node.span);
                let near = near_miss(&field.text, OPERATIONS.iter().map(|operation| operation.name));
                let help = match near {
                    Some(near) => msg!("did you mean `{near}`?"),
                    None => msg!("tools stand in `tools`; the operations are listed on the page of `ai_act`"),
                };
                let diagnostic = diagnostic.with_help(help);
                fields.findings().report(diagnostic.with_replacement(near));
            }
        }
    }
    listed
}
