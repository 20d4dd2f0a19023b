//! Reports names that are not known where they are used. The report depends on whether a name is defined nowhere, only
//! further down, or only in another scope (docs/language.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::author_texts::deprecated_placeholder;
use crate::collected::{ActionPosition, AssignmentKind, CalleeBody, Definition, UnknownUse, Use, UseKind, UseLocation};
use crate::expressions::equivalent_constant;
use crate::name_table::start_tick;
use crate::repairs::fix;
use crate::semantic_model::SemanticModel;
use crate::templates::legacy_engine::current_name;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix};
use bcc_lang::source::span::Span;
use bcc_lang::source::yaml::ScalarStyle;
use bcc_lang::template::unknown::SourceRepair;
use bcc_lang::value::scopes::Scope;
use bcc_runtime::program::turn::ENGINE_NAMES;

pub(crate) fn unknown_names(model: &SemanticModel<'_>, findings: &Findings) {
    let collected = &model.collected;
    let mut of_name: BTreeMap<&str, NameDefinitions<'_>> = BTreeMap::new();
    for unknown in &collected.unknown {
        let Some(used) = collected.uses.get(unknown.of) else { continue };
        let definitions = of_name.entry(&used.name).or_insert_with(|| NameDefinitions::of(model, &used.name));
        let visible = definitions.visible_from(used.at.body);
        if visible.is_some_and(|visible| visible.first <= used.latest(collected)) {
            legacy_placeholder(model, used, unknown).into_iter().for_each(|diagnostic| findings.report(diagnostic));
            continue;
        }
        let diagnostic = match (visible, definitions.elsewhere(used)) {
            (Some(visible), _) => defined_later(model, used, visible.definition),
            (None, Some(definition)) => out_of_scope(model, used, definition),
            (None, None) => nowhere(model, used, unknown, !definitions.by_holder.is_empty()),
        };
        findings.report(diagnostic);
    }
}

/// The finding for a use that is a legacy placeholder of a name that is known after all, as one that its own action assigns.
fn legacy_placeholder(model: &SemanticModel<'_>, used: &Use, unknown: &UnknownUse) -> Option<Diagnostic> {
    let UseLocation::Within(node, range) = &used.place else { return None };
    let is_legacy = used.by == UseKind::Text && !unknown.alone;
    is_legacy.then(|| deprecated_placeholder(model.file, node, range, &format!("{{{{ {} }}}}", used.name)))?
}

/// The definitions of one name, indexed once for all of its uses.
struct NameDefinitions<'s> {
    /// The definitions by the part of the document in which the name lives.
    by_holder: BTreeMap<CalleeBody, PartDefinitions<'s>>,
    /// The definitions outside skills, in the order of the walk.
    of_session: Vec<&'s Definition>,
}

/// The definitions in one part.
#[derive(Clone, Copy)]
struct PartDefinitions<'s> {
    definition: &'s Definition,
    /// The earliest tick at which one of them may happen.
    first: usize,
}

impl<'s> NameDefinitions<'s> {
    fn of(model: &'s SemanticModel<'_>, name: &str) -> Self {
        let mut found = Self { by_holder: BTreeMap::new(), of_session: Vec::new() };
        let places = model.names().places(name);
        for definition in places.into_iter().flat_map(|places| places.defined(&model.collected)) {
            let first = model.paths().first_reachable(definition.earliest(&model.collected));
            let visible = found.by_holder.entry(definition.holder()).or_insert(PartDefinitions { definition, first });
            visible.first = visible.first.min(first);
            if !matches!(definition.at.body, CalleeBody::Skill(_)) {
                found.of_session.push(definition);
            }
        }
        found
    }

    /// The definitions that are visible in a part of the document.
    fn visible_from(&self, body: CalleeBody) -> Option<PartDefinitions<'s>> {
        let session = CalleeBody::Session.shares_names_with(body).then_some(CalleeBody::Session);
        let holders =
            [session, body.phase().map(CalleeBody::Phase), Some(body).filter(|body| *body != CalleeBody::Session)];
        let found = holders.into_iter().flatten().filter_map(|holder| self.by_holder.get(&holder).copied());
        found.reduce(|one, other| PartDefinitions {
            definition: if other.definition.order < one.definition.order { other.definition } else { one.definition },
            first: one.first.min(other.first),
        })
    }

    /// If no definition is visible, the nearest one above, else the first one below.
    fn elsewhere(&self, used: &Use) -> Option<&'s Definition> {
        if matches!(used.at.body, CalleeBody::Skill(_)) {
            return None;
        }
        let above = self.of_session.partition_point(|definition| definition.order < used.order);
        self.of_session.get(above.saturating_sub(1)).copied()
    }
}

fn defined_later(model: &SemanticModel<'_>, used: &Use, definition: &Definition) -> Diagnostic {
    let name = shortened(&used.name);
    let span = used.place.span(model.file);
    // Outside actions, only the `condition` of a part comes before the declarations of the part.
    let own = definition.how == AssignmentKind::Declared
        && used.by == UseKind::Expression
        && used.at == (ActionPosition { body: definition.at.body, action: None });
    let (part, before, wide) = match used.at.body {
        CalleeBody::Topic(..) => ("topic", "`condition` or `for_each`", "phase"),
        _ => ("phase", "`condition`", "session"),
    };
    let (message, help) = if set_together(model, used, span, definition) {
        (
            msg!("`{name}` is not known here: this `set` assigns it, and reads all values before it assigns any"),
            msg!("`set` `{name}` in an action before this one, or declare `{name}`"),
        )
    } else if own && matches!(used.at.body, CalleeBody::Topic(..) | CalleeBody::Phase(_)) {
        (
            msg!(
                "`{name}` is not known here: what a {part} declares is not known in its own {before}",
                part = Message::word(part),
                before = Message::word(before)
            ),
            msg!("move `{name}` to the `declare` of the {wide}", wide = Message::word(wide)),
        )
    } else {
        (
            msg!("`{name}` is not known here: it is assigned only further down"),
            msg!("move what assigns it before this point, or declare `{name}`"),
        )
    };
    Diagnostic::error("unknown-name", message, model.file, span).with_help(help).with_related(
        "it is assigned here",
        model.file,
        definition.span,
    )
}

/// Whether the use is in a value of the same `set` that defines the name.
fn set_together(model: &SemanticModel<'_>, used: &Use, span: Span, definition: &Definition) -> bool {
    // All values of one `set` are collected before any of its names becomes known.
    let sets = &model.collected.sets;
    let start = sets.partition_point(|set| set.defined_before < used.defined_before);
    let end = sets.partition_point(|set| set.defined_before <= used.defined_before);
    let sets = sets.get(start..end).unwrap_or_default();
    let at = |place: Span| {
        let count = sets.partition_point(|set| set.name.span.start <= place.start);
        count.checked_sub(1).and_then(|last| sets.get(last))
    };
    at(span).is_some_and(|set| set.span.start <= span.start && span.end <= set.span.end)
        && at(definition.span).is_some_and(|set| set.name.span == definition.span)
}

fn nowhere(model: &SemanticModel<'_>, used: &Use, unknown: &UnknownUse, defined_elsewhere: bool) -> Diagnostic {
    let name = used.name.as_str();
    let span = used.place.span(model.file);
    let in_skill = matches!(used.at.body, CalleeBody::Skill(_));
    let word = equivalent_constant(name).filter(|_| matches!(used.by, UseKind::Expression | UseKind::Text));
    let (word, certain) = (word.map(|(word, _)| word), word.is_some_and(|(_, certain)| certain));
    let near = word.map(str::to_owned).or_else(|| unknown.near.clone());
    let help = match &near {
        _ if word == Some("none") => msg!("null is written `none` here; test for it with `x is none`"),
        Some(near) if word.is_some() => msg!("it is written `{near}` here"),
        Some(near) => msg!("did you mean `{near}`?"),
        None if in_skill && defined_elsewhere => {
            msg!("a skill can use only its own inputs: add it to `inputs`, and pass it where the skill is called")
        }
        None => match current_name(name, ENGINE_NAMES.into_iter()) {
            Some(current) => msg!(
                "declare it, or extract it in an earlier action; what an older engine called `{name}` is `{current}` here"
            ),
            None => msg!("declare it, or extract it in an earlier action"),
        },
    };
    let message = msg!("`{}` is not known here", shortened(name));
    let diagnostic = Diagnostic::error("unknown-name", message, model.file, span);
    if !certain && let Some(meant) = meant(model, used, unknown) {
        let diagnostic = diagnostic.with_help(match &near {
            Some(near) if meant.certain => msg!("{}, or did you mean `{near}`?", meant.help),
            _ => meant.help,
        });
        let diagnostic = diagnostic.with_fixes(meant.repair);
        let truth =
            word.filter(|_| unknown.alone).map(|word| Fix::new(msg!("use `{word}`"), vec![Edit::replace(span, word)]));
        return diagnostic.with_fixes(truth);
    }
    let diagnostic = diagnostic.with_help(help);
    match &near {
        Some(near) if unknown.alone => {
            let edits = vec![Edit { span, text: near.clone() }];
            // `null` is certain; a similar name is a guess, and so is `yes`.
            diagnostic.with_fixes([Fix::sure(msg!("use `{near}`"), edits).only_sure_if(certain)])
        }
        _ => diagnostic,
    }
}

/// The probable meaning of a name that is defined nowhere.
struct Meant {
    help: Message,
    repair: Option<Fix>,
    /// Whether a similar name may be meant as well.
    certain: bool,
}

/// Fields of model replies, which scripts cannot access.
const REPLY_FIELDS: [&str; 4] = ["EXIT", "BRIEF", "metrics", "progress_suggestion"];

/// The name that only triggers can use.
const METADATA: &str = "metadata";

/// Guesses the meaning of an unknown name from its context: a text without quotes, a sentence, a name with a hyphen.
fn meant(model: &SemanticModel<'_>, used: &Use, unknown: &UnknownUse) -> Option<Meant> {
    let UseLocation::Within(node, range) = &used.place else { return None };
    let name = used.name.as_str();
    let scalar = node.as_scalar()?;
    let (before, after) = (scalar.text.get(..range.start)?, scalar.text.get(range.end..)?);
    let replacement = |range: Range<usize>, text: String| {
        fix(model.file, node, 0, &SourceRepair::one(msg!("write `{text}`"), range, text.clone()))
    };
    if let Some(left) = before.strip_suffix('-').filter(|_| unknown.alone) {
        let start = left
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
            .map_or(0, |at| at + left.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
        let joined = format!("{}_{name}", left.get(start..)?);
        let known = model.names().places(&joined).is_some_and(|places| !places.definitions.is_empty());
        return known.then(|| Meant {
            help: msg!("a name cannot contain `-`, which subtracts: did you mean `{joined}`?"),
            repair: replacement(start..range.end, joined),
            certain: false,
        });
    }
    if name == METADATA && matches!(used.by, UseKind::Expression | UseKind::Text) {
        let help = "only the `when` of a trigger can read `metadata`: to use what the answer says elsewhere, extract it with the action's `output`";
        return Some(Meant { help: Message::word(help), repair: None, certain: false });
    }
    if !matches!(used.by, UseKind::Expression) {
        return None;
    }
    let (left, right) = (before.trim_end(), after.trim_start());
    if REPLY_FIELDS.contains(&name) {
        let help = msg!(
            "`{name}` belongs to the model's reply and is never a variable: extract what you need with the action's `output`"
        );
        return Some(Meant { help, repair: None, certain: false });
    }
    let sentence = || !name.is_ascii() && name.chars().nth(4).is_some() && unknown.near.is_none();
    if left.is_empty() && right.is_empty() && sentence() {
        let help = "a condition is not a sentence: extract a boolean variable in an action and write its name, or write a comparison, as in `age >= 18`";
        return Some(Meant { help: Message::word(help), repair: None, certain: false });
    }
    let ends = |rest: &str| {
        rest.is_empty() || rest.starts_with(')') || ["and ", "or ", "else "].iter().any(|word| rest.starts_with(word))
    };
    let compared = (left.ends_with("==") || left.ends_with("!=")) && ends(right);
    let listed = || {
        let list = left.rfind('[').filter(|_| left.ends_with(['[', ',']) && right.starts_with([',', ']']))?;
        let asks = left.get(..list)?.trim_end().ends_with(" in");
        (asks && !left.get(list..)?.contains(']')).then_some(())
    };
    if !compared && listed().is_none() {
        return None;
    }
    let text = if scalar.style == ScalarStyle::SingleQuoted { format!("\"{name}\"") } else { format!("'{name}'") };
    let help = msg!("if you mean a text, put it in quotes: {text}");
    let repair = if unknown.near.is_none() { replacement(range.clone(), text) } else { None };
    Some(Meant { help, repair, certain: true })
}

fn out_of_scope(model: &SemanticModel<'_>, used: &Use, definition: &Definition) -> Diagnostic {
    let name = shortened(&used.name);
    let holder = definition.holder();
    let part = model.collected.parts.get(&holder);
    let how = match part {
        Some(part) if part.end <= used.order => "which ended before this point",
        Some(_) if start_tick(&model.collected, ActionPosition { body: holder, action: None }) > used.order => {
            "which starts only after this point"
        }
        _ => "which does not contain this point",
    };
    let message = msg!("`{name}` belongs to {}, {how}", model.part_name(holder), how = Message::word(how));
    let wide = match (definition.to, used.at.body.phase()) {
        (Scope::Topic, Some(phase)) if definition.at.body.phase() == Some(phase) => Scope::Phase,
        _ => Scope::Session,
    };
    let help = match definition.how {
        AssignmentKind::Element => {
            msg!(
                "an element of `for_each` is known only in its topic: `set` another variable to it there, and use that variable"
            )
        }
        AssignmentKind::Declared => {
            msg!(
                "move it to the `declare` of the {wide}, so that it is available as long as it is needed",
                wide = Message::word(wide.name())
            )
        }
        AssignmentKind::Written | AssignmentKind::Input if definition.scope.is_some() => {
            msg!("write `scope: {wide}` there, so that it is available as long as it is needed")
        }
        AssignmentKind::Written | AssignmentKind::Input => {
            msg!("declare `{name}` in the {wide} instead", wide = Message::word(wide.name()))
        }
    };
    Diagnostic::error("out-of-scope", message, model.file, used.place.span(model.file)).with_help(help).with_related(
        "its scope is specified here",
        model.file,
        definition.span,
    )
}
