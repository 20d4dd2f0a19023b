//! `condition`: picks the first case whose `when` is true, and runs its actions, sets its variables or jumps to its target.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::program::action::{Action, Branch};
use crate::program::assigned::Assignment;
use crate::program::assignments::{assign, read_values};
use crate::program::flow::{ActionError, Flow, StepBlock};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::ProgramSteps;
use crate::program::turn::Turn;
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::Fields;
use bcc_lang::script::lines::indent;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix};
use bcc_lang::source::span::Span;
use bcc_lang::source::yaml::{NodeKind, YamlNode};

pub struct Condition;

struct Cases {
    cases: Vec<Case>,
    otherwise: Option<(Span, Consequence)>,
}

struct Case {
    when: Expr,
    span: Span,
    then: Consequence,
}

enum Consequence {
    Steps(ProgramSteps),
    Set(Vec<Assignment>),
    /// Makes the assignments, then jumps.
    Goto(Vec<Assignment>, String),
}

impl Consequence {
    fn sets(&self) -> bool {
        match self {
            Self::Set(_) => true,
            Self::Goto(values, _) => !values.is_empty(),
            Self::Steps(_) => false,
        }
    }

    fn steps(&self) -> Option<&ProgramSteps> {
        match self {
            Self::Steps(steps) => Some(steps),
            Self::Set(_) | Self::Goto(..) => None,
        }
    }

    fn goto(&self) -> Option<&str> {
        match self {
            Self::Goto(_, id) => Some(id),
            Self::Steps(_) | Self::Set(_) => None,
        }
    }
}

/// The key in the `metadata` of an outcome that names the chosen case.
const BRANCH: &str = "branch";

/// The name of the block that runs when no case matches.
const ELSE: &str = "else";

/// The name of the case with this number in messages.
fn case_name(number: usize) -> String {
    format!("case {}", number + 1)
}

impl Cases {
    /// The name of this block in messages.
    fn branch(block: &str) -> Option<String> {
        if block == ELSE {
            return Some(ELSE.to_owned());
        }
        block.strip_prefix("case.").and_then(|number| number.parse().ok()).map(case_name)
    }

    /// The outcome of this block; `None` when no case matched.
    fn outcome(block: Option<&str>) -> Outcome {
        let mut outcome = Outcome::done(ExitReason::ExitCriteriaMet);
        if let Some(branch) = block.and_then(Self::branch) {
            outcome.metadata.insert(BRANCH.into(), branch.into());
        }
        outcome
    }
}

/// The block that was entered, so that the next turn does not choose again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Entered {
    block: Option<String>,
}

impl Kind for Condition {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "condition",
            schema: include_str!("../../../../schemas/actions/condition.json"),
            page: include_str!("../../../../docs/actions/condition.md"),
            exits: &["exit_criteria_met"],
        }
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        if report_missing_cases(fields, checker) {
            return None;
        }
        let items = fields.required_list("cases").unwrap_or_default();
        let mut cases = Vec::new();
        let mut always_branches = fields.take("else").is_some();
        for item in items {
            let Some(inner) = Fields::of(item, "a case", fields.file(), fields.findings()) else { continue };
            if report_else_case(&inner, checker) {
                continue;
            }
            let when = inner.required_text("when").and_then(|field| checker.expression(&field));
            let then = consequence(&inner, checker);
            always_branches &= branches(&inner);
            inner.finish();
            if let (Some(when), Some(then)) = (when, then) {
                cases.push(Case { when, span: item.span, then });
            }
        }
        let else_node = fields.take("else");
        let otherwise = else_node.and_then(|node| {
            if let NodeKind::Sequence(items) = &node.kind {
                report_else_list(node, fields);
                checker.steps(items);
                return None;
            }
            let inner = Fields::of(node, "`else`", fields.file(), fields.findings())?;
            let then = consequence(&inner, checker);
            always_branches &= branches(&inner);
            inner.finish();
            then.map(|then| (node.span, then))
        });
        let lacks_default = else_node.is_none();
        let described =
            ActionProperties { max_rounds: 1, always_branches, lacks_default, ..ActionProperties::default() };
        checker.describe(described);
        let complete = !items.is_empty() && cases.len() == items.len() && otherwise.is_some() == else_node.is_some();
        complete.then(|| Box::new(Cases { cases, otherwise }) as Box<dyn Action>)
    }
}

/// Checks the actions below a key that does not belong to this mapping, for their own mistakes and the names that they set.
fn check_misplaced_actions(fields: &Fields<'_>, key: &str, checker: &mut dyn KindChecker) {
    if let Some(items) = fields.take_unknown(key).and_then(|entry| entry.value.as_sequence()) {
        checker.steps(items);
    }
}

/// Reports the fields of a case that are written directly in `config`.
fn report_missing_cases(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> bool {
    let Some(when) = ["when", "if"].into_iter().find(|key| fields.has(key)).filter(|_| !fields.has("cases")) else {
        return false;
    };
    let place = fields.take_unknown(when).map_or(fields.span(), |entry| entry.key.span);
    let message = msg!("{} needs `cases`: this case is not in a list", fields.subject());
    let help = "write `cases:` and, indented below it, `- when: …` with the `actions:` or `set:` of the case";
    let diagnostic = Diagnostic::error("missing-key", message, fields.file(), place);
    fields.findings().report(diagnostic.with_help(help));
    for key in ["actions", "then", "else"] {
        check_misplaced_actions(fields, key, checker);
    }
    for key in ["set", "goto"] {
        let _ = fields.take_unknown(key);
    }
    true
}

/// Reports an `else` that is written as one of the cases.
fn report_else_case(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> bool {
    if fields.has("when") || fields.has("if") {
        return false;
    }
    let Some(entry) = fields.take_unknown("else") else { return false };
    let message = "`else` is among the cases, but it is not a case";
    let help =
        "write `else:` below the list, aligned with `cases:` and without a dash, with `actions:` or `set:` below it";
    let diagnostic = Diagnostic::error("unknown-key", message, fields.file(), entry.key.span);
    fields.findings().report(diagnostic.with_help(help));
    for key in ["else", "actions"] {
        check_misplaced_actions(fields, key, checker);
    }
    let _ = fields.take_unknown("set");
    true
}

/// Reports an `else` that is a list of actions.
fn report_else_list(node: &YamlNode, fields: &Fields<'_>) {
    let message = "`else` must be a mapping of fields, but this is a list";
    let help = "write `actions:` between `else:` and the list, as in `else: { actions: […] }`";
    let file = fields.file();
    let mut diagnostic = Diagnostic::error("wrong-type", message, file, node.span).with_help(help);
    // The list is on the lines below its key, and indented more than the key.
    let line = file.line_span(file.line(node.span.start)).map_or(node.span.start, |line| line.start);
    let before = file.slice(Span::new(line, node.span.start));
    let key = fields.entry("else").and_then(|entry| indent(file, entry));
    if before.trim_matches(' ').is_empty() && key.is_some_and(|key| key.len() < before.len()) {
        let edits = vec![Edit::insert(node.span.start, format!("actions:\n{before}"))];
        let fix = Fix::sure("write `actions:` above the list", edits);
        let is_action = |item: &Arc<YamlNode>| item.get("action_type").is_some();
        diagnostic = diagnostic
            .with_fixes([fix.only_sure_if(node.as_sequence().is_some_and(|items| items.iter().all(is_action)))]);
    }
    fields.findings().report(diagnostic);
}

/// Whether this case jumps elsewhere or runs actions.
fn branches(fields: &Fields<'_>) -> bool {
    fields.take("goto").is_some() || fields.take("actions").is_some()
}

fn consequence(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Consequence> {
    let goto = fields.take("goto").is_some();
    let target = fields.name("goto");
    if let Some(id) = &target {
        checker.goto(id);
    }
    let conflict = |span, [one, other]: [&str; 2], help: &'static str| {
        let message = msg!("{} has both `{one}` and `{other}`", fields.subject());
        let diagnostic = Diagnostic::error("conflicting-fields", message, fields.file(), span);
        fields.findings().report(diagnostic.with_help(help));
    };
    let has_actions = fields.take("actions").is_some();
    let set = fields.entry("set");
    match (has_actions, set) {
        (true, Some(entry)) => {
            let help = "keep one; an action of kind `set` can be one of the actions";
            conflict(entry.key.span, ["actions", "set"], help);
            None
        }
        (true, None) => {
            let steps = fields.required_list("actions").map(|nodes| Consequence::Steps(checker.steps(nodes)));
            if let Some(entry) = fields.entry("goto") {
                let help = "keep one; the last action can be a `condition` that jumps elsewhere";
                conflict(entry.key.span, ["actions", "goto"], help);
                return None;
            }
            steps
        }
        (false, Some(set)) => {
            let set = read_values(&set.value, fields, checker)?;
            match target {
                Some(id) => Some(Consequence::Goto(set, id.value)),
                None if goto => None,
                None => Some(Consequence::Set(set)),
            }
        }
        (false, None) if goto => target.map(|id| Consequence::Goto(vec![], id.value)),
        (false, None) => {
            let message = msg!("{} does not specify what to do", fields.subject());
            let help = "add `actions:`, `set:` or `goto:`";
            let diagnostic = Diagnostic::error("missing-key", message, fields.file(), fields.span());
            fields.report_missing(&["actions", "set", "goto"], diagnostic.with_help(help));
            None
        }
    }
}

#[async_trait]
impl Action for Cases {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let entered: Entered = turn.state()?;
        if let Some(block) = &entered.block {
            return Ok(Flow::done(Self::outcome(Some(block))));
        }
        let mut chosen = self.otherwise.as_ref().map(|(_, then)| (ELSE.to_owned(), then));
        for (number, case) in self.cases.iter().enumerate() {
            if turn.holds(&case.when)? {
                chosen = Some((format!("case.{number}"), &case.then));
                break;
            }
        }
        let Some((block, then)) = chosen else { return Ok(Flow::done(Self::outcome(None))) };
        let outcome = Self::outcome(Some(&block));
        Ok(match then {
            Consequence::Steps(_) => {
                turn.store_state(&Entered { block: Some(block.clone()) })?;
                Flow::Enter(StepBlock(block))
            }
            Consequence::Set(values) => Flow::done(Outcome { extracted_variables: assign(turn, values)?, ..outcome }),
            Consequence::Goto(values, id) => {
                let extracted_variables =
                    if values.is_empty() { outcome.extracted_variables } else { assign(turn, values)? };
                let outcome = Outcome { extracted_variables, ..outcome };
                Flow::Goto(Box::new(outcome), id.clone(), Message::word("the matching case jumps there"))
            }
        })
    }

    fn is_free_of_effects(&self) -> bool {
        true
    }

    fn branches(&self) -> Vec<Branch<'_>> {
        let otherwise = self.otherwise.as_ref().map(|(span, then)| Branch {
            name: ELSE.to_owned(),
            when: None,
            span: *span,
            steps: then.steps(),
            goto: then.goto(),
            sets: then.sets(),
            after: &[],
        });
        let cases = self.cases.iter().enumerate().map(|(number, case)| Branch {
            name: case_name(number),
            when: Some(case.when.source()),
            span: case.span,
            steps: case.then.steps(),
            goto: case.then.goto(),
            sets: case.then.sets(),
            after: &[],
        });
        cases.chain(otherwise).collect()
    }

    fn blocks(&self) -> Vec<&ProgramSteps> {
        let all = self.cases.iter().map(|case| &case.then).chain(self.otherwise.iter().map(|(_, then)| then));
        all.filter_map(Consequence::steps).collect()
    }

    fn steps(&self, block: &str) -> Option<&ProgramSteps> {
        let then = match block.strip_prefix("case.") {
            Some(number) => &self.cases.get(number.parse::<usize>().ok()?)?.then,
            None => self.otherwise.as_ref().filter(|_| block == ELSE).map(|(_, then)| then)?,
        };
        then.steps()
    }
}
