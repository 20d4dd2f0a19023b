//! The state of the checker during the walk over a document, and the interface that it offers to kinds.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::cleanup::{Cleanup, has_option};
use crate::collected::{
    ActionPosition, AssignmentKind, CallBy, CalleeBody, Collected, CollectedAction, CollectedAssignment, CollectedCall,
    CollectedOutput, CollectedPrompt, Definition, ExpressionRole, UnknownUse, Use, UseKind, UseLocation,
};
use crate::context::CheckContext;
use crate::declarations::check_reserved;
use crate::known::Known;
use crate::placeholders::ConvertedText;
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::{Fields, TextField, shortened};
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read;
use bcc_lang::script::script::RawAction;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{NodeKind, YamlEntry, YamlNode};
use bcc_lang::template::builtin::fallbacks;
use bcc_lang::template::front_matter::FallbackTexts;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::templates::Templates;
use bcc_lang::template::text::{AuthorTexts, Text};
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Scope;
use bcc_llm::reply::shape::BaseSchema;
use bcc_runtime::program::custom::CustomKind;
use bcc_runtime::program::kind::{ActionProperties, Kind, KindChecker, SkillArgument};
use bcc_runtime::program::output::OutputVariable;
use bcc_runtime::program::program::{ProgramStep, ProgramSteps};
use bcc_runtime::program::prompt::PromptNames;
use bcc_runtime::program::route_table::RouteTable;
use bcc_runtime::program::turn::ENGINE_NAMES;

/// The maximum number of unknown names for which a similar one is searched; see [`Findings::may_advise`].
const MAX_SUGGESTIONS: usize = 1_000;

/// The names that a template expects from the author, each with whether it is required.
pub(crate) type RequestedNames = Arc<[(String, bool)]>;

pub struct Checker<'a> {
    pub file: &'a Arc<SourceFile>,
    pub findings: &'a Findings,
    pub kinds: &'a [&'a dyn Kind],
    /// The kinds that the project defines, by name.
    pub custom: &'a BTreeMap<String, CustomKind>,
    pub reply_schemas: &'a BTreeMap<String, Value>,
    pub texts: AuthorTexts,
    pub templates: &'a Templates,
    pub known: Known,
    /// The reported template errors: each is reported once, at the first action that uses the template.
    pub reported_template_errors: BTreeSet<String>,
    /// The requested reply schemas that are valid, by kind and version of its template.
    pub replies: BTreeMap<(&'static str, u32), Arc<BaseSchema>>,
    /// The names that a template, by name and version, expects from the author, and whether they are required.
    pub template_requests: BTreeMap<(&'static str, u32), RequestedNames>,
    /// The actions that could be compiled, by their numbers in [`Collected::actions`].
    pub compiled_steps: BTreeMap<usize, ProgramStep>,
    pub action_ids: BTreeMap<String, Span>,
    pub collected: Collected,
    pub body: CalleeBody,
    /// The outputs of the `hear` lists around the current position, the outermost list first.
    pub heard: Vec<Vec<OutputVariable>>,
    /// The actions that enclose the current position, outermost first.
    pub enclosing: Vec<usize>,
    /// The number of the current list of actions.
    pub block: usize,
    /// The number of lists of actions so far.
    pub blocks: usize,
    /// Whether the current position is in a `finally` or a `compensate`.
    pub cleanup: Option<Cleanup>,
}

impl<'a> Checker<'a> {
    pub fn new(file: &'a Arc<SourceFile>, context: &'a CheckContext<'_>, findings: &'a Findings) -> Self {
        Self {
            file,
            findings,
            kinds: context.kinds,
            custom: context.custom,
            reply_schemas: context.reply_schemas,
            texts: AuthorTexts::new(),
            templates: &context.templates,
            known: Known::default(),
            reported_template_errors: BTreeSet::new(),
            replies: BTreeMap::new(),
            template_requests: BTreeMap::new(),
            compiled_steps: BTreeMap::new(),
            action_ids: BTreeMap::new(),
            collected: Collected { complete: true, ..Collected::default() },
            body: CalleeBody::Session,
            heard: Vec::new(),
            enclosing: Vec::new(),
            block: 0,
            blocks: 0,
            cleanup: None,
        }
    }
}

impl Checker<'_> {
    pub fn position(&self) -> ActionPosition {
        ActionPosition { body: self.body, action: self.enclosing.last().copied() }
    }

    pub fn step(&mut self, raw: &RawAction) -> Option<ProgramStep> {
        self.unique(&raw.id, "action_id");
        let number = self.collected.actions.len();
        let start = self.collected.tick();
        self.collected.actions.push(CollectedAction {
            id: raw.id.clone(),
            kind: raw.kind.clone(),
            span: raw.span,
            body: self.body,
            parent: self.enclosing.last().copied(),
            block: self.block,
            condition: None,
            conditional: raw.condition.is_some(),
            on_exit: None,
            described: None,
            sound: false,
            depends_on: raw.options.depends_on.clone(),
            cleanup: self.cleanup,
            order: start..usize::MAX,
        });
        self.enclosing.push(number);
        let step = self.compile_step(raw, number);
        let on_exit = self.with_failure_routes(raw, number);
        let routes = self.routes(on_exit.as_ref());
        if let Some(action) = self.collected.actions.get_mut(number) {
            action.on_exit = on_exit;
        }
        let compensate = self.cleanup(&raw.compensate, Cleanup::Compensate);
        let mut step = step.zip(compensate).map(|(step, compensate)| ProgramStep { compensate, ..step });
        if let Some(step) = &mut step {
            step.routes = routes;
            self.compiled_steps.insert(number, step.clone());
        }
        self.enclosing.pop();
        let end = self.collected.tick();
        if let Some(action) = self.collected.actions.get_mut(number) {
            action.order.end = end;
        }
        self.collected.complete &=
            step.is_some() || self.collected.actions.get(number).is_some_and(|action| action.sound);
        step
    }

    fn compile_step(&mut self, raw: &RawAction, number: usize) -> Option<ProgramStep> {
        let before = self.collected.expressions.len();
        let condition = raw.condition.as_ref().map(|field| self.expression(field));
        if let Some(action) = self.collected.actions.get_mut(number).filter(|_| matches!(condition, Some(Some(_)))) {
            action.condition = Some(before);
        }
        let Some(kind) = self.kinds.iter().copied().find(|kind| kind.name() == raw.kind.value) else {
            if !raw.kind.value.is_empty() {
                self.unknown_kind(&raw.kind);
            }
            if let Some(config) = &raw.config {
                self.learn_probable_names(config);
            }
            return None;
        };
        self.report_unsupported_options(raw, kind);
        let what = if raw.id.value.is_empty() { msg!("this action") } else { msg!("`{}`", raw.id.value) };
        let fields = match &raw.config {
            Some(config) => Fields::of(config, msg!("the config of {what}"), self.file, self.findings)?,
            None => Fields::absent(raw.id.span, msg!("the config of {what}"), self.file, self.findings),
        };
        let fields = fields.with_sibling_keys(&raw.sibling_keys);
        let mistakes = self.findings.author_errors();
        let action = kind.check(&fields, self);
        if let Some(entry) = self.collected.actions.get_mut(number) {
            entry.sound = action.is_some() || self.findings.author_errors() == mistakes;
        }
        fields.finish_with(|key| {
            let siblings =
                ["condition", "action_type", "action_id", "on_exit", "on_interrupted", "depends_on", "compensate"];
            let is_sibling = siblings.contains(&key) || has_option(kind, key);
            is_sibling.then(|| msg!("`{key}` belongs next to `config`, not inside it"))
        });
        let condition = match condition {
            Some(None) => return None,
            Some(Some(condition)) => Some(condition),
            None => None,
        };
        let described = self.collected.actions.get(number).and_then(|entry| entry.described.as_ref());
        Some(ProgramStep {
            id: raw.id.value.clone(),
            kind: kind.name(),
            exits: described.and_then(|described| described.exits).unwrap_or(kind.exits()),
            condition,
            action: Arc::from(action?),
            routes: RouteTable::default(),
            on_interrupted: raw.on_interrupted,
            options: raw.options.clone(),
            compensate: Arc::default(),
        })
    }

    /// Reports `timeout`, `retry` and `on_failure` next to `config` for a kind that does not have them.
    fn report_unsupported_options(&self, raw: &RawAction, kind: &dyn Kind) {
        for (name, span) in raw.options.written().filter(|(name, _)| !has_option(kind, name)) {
            let message = msg!("an action of the type `{}` has no `{name}` next to `config`", kind.name());
            // Such as the `timeout` of `exec`.
            let schema: Option<Value> = serde_json::from_str(kind.schema()).ok();
            let in_config = schema.is_some_and(|schema| schema.pointer(&format!("/properties/{name}")).is_some());
            let help = match in_config {
                true => msg!("write it under `config:`"),
                false => {
                    let with = |kind: &&&dyn Kind| has_option(**kind, name);
                    let kinds: Vec<&str> = self.kinds.iter().filter(with).map(|kind| kind.name()).collect();
                    msg!("remove it; only actions with effects outside the session have it: {}", Message::names(&kinds))
                }
            };
            self.findings.report(Diagnostic::error("unknown-key", message, self.file, span).with_help(help));
        }
    }

    /// Learns the names that an action of an unknown kind would probably set, so that one mistake does not cause further
    /// reports.
    fn learn_probable_names(&mut self, node: &YamlNode) {
        match &node.kind {
            NodeKind::Sequence(items) => items.iter().for_each(|item| self.learn_probable_names(item)),
            NodeKind::Mapping(entries) => {
                for YamlEntry { key, value } in entries {
                    match key.value.as_str() {
                        "get" | "target_variable" => {
                            if let Some(name) = value.as_scalar() {
                                self.known.learn(&name.text, None);
                            }
                        }
                        "values" | "set" => {
                            for entry in value.as_mapping().unwrap_or_default() {
                                self.known.learn(&entry.key.value, None);
                            }
                        }
                        _ => self.learn_probable_names(value),
                    }
                }
            }
            NodeKind::Scalar(_) => {}
        }
    }

    fn unique(&mut self, id: &Spanned<String>, name: &str) {
        if id.value.is_empty() {
            return;
        }
        match self.action_ids.get(&id.value) {
            Some(first) if *first == id.span => {
                let message = msg!("the `{name}` `{}` is used twice because an alias repeats it", id.value);
                let help = "write out the action in place of the alias (`*…`), with an id of its own";
                self.findings.report(Diagnostic::error("duplicate-id", message, self.file, id.span).with_help(help));
            }
            Some(first) => {
                let message = msg!("the `{name}` `{}` is used twice", id.value);
                let help = "give each a unique id: histories, replies and routes refer to it";
                let diagnostic = Diagnostic::error("duplicate-id", message, self.file, id.span).with_help(help);
                self.findings.report(diagnostic.with_related("first used here", self.file, *first));
            }
            None => {
                self.action_ids.insert(id.value.clone(), id.span);
            }
        }
    }

    fn unknown_kind(&self, kind: &Spanned<String>) {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        // `ask` is not similar enough to `ai_ask`, but means it.
        let with_prefix = format!("ai_{}", kind.value);
        let near = names.iter().copied().find(|name| *name == with_prefix);
        let near = near.or_else(|| near_miss(&kind.value, names.iter().copied()));
        let help = match near {
            Some(near) => msg!("did you mean `{near}`?"),
            None => msg!("action types are {}", Message::names(&names)),
        };
        let message = msg!("there is no action type `{}`", shortened(&kind.value));
        let diagnostic = Diagnostic::error("unknown-kind", message, self.file, kind.span).with_help(help);
        self.findings.report(diagnostic.with_replacement(near));
    }

    fn is_known(&self, name: &str) -> bool {
        self.known.knows(name) || ENGINE_NAMES.contains(&name)
    }

    /// Records a use of a name at `place`, also if the name is not known there. `alone`: whether the place contains only the
    /// name.
    pub(crate) fn used(&mut self, name: &str, place: UseLocation, by: UseKind, optional: bool, alone: bool) {
        if !optional && !self.is_known(name) {
            let advise = self.findings.may_suggest() && self.collected.unknown.len() < MAX_SUGGESTIONS;
            let near = if advise { near_miss(name, self.known.names().chain(ENGINE_NAMES)) } else { None };
            let near = near.map(str::to_owned);
            self.collected.unknown.push(UnknownUse { of: self.collected.uses.len(), near, alone });
        }
        let (defined_before, at, order) = (self.collected.definitions.len(), self.position(), self.collected.tick());
        self.collected.uses.push(Use { name: name.to_owned(), place, at, by, optional, defined_before, order });
    }
}

impl KindChecker for Checker<'_> {
    fn text(&mut self, field: &TextField) -> Option<Text> {
        self.author_text(field)
    }

    fn code(&mut self, field: &TextField) -> Option<Text> {
        self.compiled(field, &ConvertedText::unchanged(&field.text))
    }

    fn expression(&mut self, field: &TextField) -> Option<Expr> {
        self.compile(field, 0..field.text.len(), ExpressionRole::Condition)
    }

    fn expression_within(&mut self, field: &TextField, within: Range<usize>) -> Option<Expr> {
        self.compile(field, within, ExpressionRole::Value)
    }

    fn steps(&mut self, nodes: &[Arc<YamlNode>]) -> ProgramSteps {
        let raw: Vec<RawAction> =
            nodes.iter().filter_map(|node| read::action(node, self.file, self.findings)).collect();
        self.blocks += 1;
        let outer = std::mem::replace(&mut self.block, self.blocks);
        let steps = raw.iter().filter_map(|raw| self.step(raw)).collect();
        self.block = outer;
        Arc::new(steps)
    }

    fn may_have_value(&mut self, name: &Spanned<String>, scope: Option<Scope>) {
        check_reserved(&name.value, name.span, self.file, self.findings);
        let to = self.known.learn(&name.value, scope);
        let (at, order) = (self.position(), self.collected.tick());
        self.collected.definitions.push(Definition {
            name: name.value.clone(),
            span: name.span,
            at,
            how: AssignmentKind::Written,
            scope,
            to,
            order,
            declared: None,
            has_value: false,
        });
    }

    fn extracts(&mut self, name: &Spanned<String>, output: &OutputVariable) {
        let (declared, at) = (self.declared(&name.value), self.position());
        self.collected.outputs.push(CollectedOutput { output: output.clone(), span: name.span, declared, at });
    }

    fn sets(&mut self, name: &Spanned<String>, constant: Option<Value>, span: Span) {
        let (name, declared, at) = (name.clone(), self.declared(&name.value), self.position());
        let defined_before = self.collected.definitions.len();
        self.collected.sets.push(CollectedAssignment { name, constant, span, declared, at, defined_before });
    }

    fn describe(&mut self, described: ActionProperties) {
        if let Some(action) = self.enclosing.last().and_then(|number| self.collected.actions.get_mut(*number)) {
            action.described = Some(described);
        }
    }

    fn goto(&mut self, id: &Spanned<String>) {
        let at = self.position();
        self.collected.gotos.push((id.clone(), at));
    }

    fn rewind(&mut self, id: &Spanned<String>) {
        let at = self.position();
        self.collected.rewinds.push((id.clone(), at));
    }

    fn skill(&mut self, skill: &Spanned<String>, inputs: Vec<SkillArgument>, outputs: Vec<Spanned<String>>) {
        let at = self.position();
        self.collected.calls.push(CollectedCall { by: CallBy::Author, skill: skill.clone(), inputs, outputs, at });
    }

    fn runs(&mut self, kind: &CustomKind, given: Vec<SkillArgument>, taken: Vec<Spanned<String>>) {
        self.runs_kind(kind, Some((given, taken)));
    }

    fn runs_any_kind(&mut self) {
        self.custom.values().for_each(|kind| self.runs_kind(kind, None));
    }

    fn declared(&self, name: &str) -> Option<(Option<DeclaredType>, Vec<Value>)> {
        self.known.declaration(name).map(|declaration| (declaration.declared, declaration.choices.clone()))
    }

    fn hear_outputs(&self) -> Vec<OutputVariable> {
        let mut heard: Vec<OutputVariable> = Vec::new();
        for output in self.heard.iter().rev().flatten() {
            if heard.iter().all(|inner| inner.get != output.get) {
                heard.push(output.clone());
            }
        }
        heard
    }

    fn require_known(&mut self, name: &Spanned<String>) {
        self.used(&name.value, UseLocation::Whole(name.span), UseKind::Field, false, true);
    }

    fn template(&mut self, name: &'static str, version: u32, prompt: PromptNames, at: &Fields<'_>) {
        let position = self.position();
        self.collected.prompts.push(CollectedPrompt { name, version, at: position });
        self.prompt(name, version, prompt, at);
    }

    fn has_template(&self, name: &str, version: u32) -> bool {
        self.templates.number(&format!("{name}_v{version}.md")).is_some()
    }

    fn template_fallbacks(&self, name: &'static str, version: u32) -> FallbackTexts {
        let Ok(template) = self.templates.get(name, version) else { return FallbackTexts::default() };
        let mut texts = template.front().fallbacks();
        // A template without some of them, for example of an earlier release, uses the built-in ones.
        let builtin = fallbacks(name, template.language() == PromptLanguage::Zh);
        for (own, builtin) in [
            (&mut texts.opening, builtin.opening),
            (&mut texts.later, builtin.later),
            (&mut texts.partial, builtin.partial),
            (&mut texts.safety, builtin.safety),
            (&mut texts.crisis, builtin.crisis),
        ] {
            if own.is_empty() {
                *own = builtin;
            }
        }
        texts
    }

    fn template_language(&self, name: &'static str, version: u32) -> PromptLanguage {
        let template = self.templates.get(name, version);
        template.map_or_else(|_| self.templates.language(), |template| template.language())
    }

    fn reply_schema(&mut self, kind: &'static str, version: u32, at: &Fields<'_>) -> Option<Arc<BaseSchema>> {
        if let Some(base) = self.replies.get(&(kind, version)) {
            return Some(Arc::clone(base));
        }
        let base = Arc::new(BaseSchema::new(self.schema_of_reply(kind, version, at)?));
        self.replies.insert((kind, version), Arc::clone(&base));
        Some(base)
    }
}
