//! Assigns declarations to scopes: each belongs to the scope of its list, or to the wider scope that it names.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashMap;
use std::sync::Arc;

use bcc_lang::script::declare::Declared;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::scopes::{DeclarationMap, Scope};
use bcc_runtime::program::turn::{ENGINE_NAMES, HIDEABLE_NAMES};

/// The collected declarations of one scope, with the places of their names.
#[derive(Debug, Default)]
pub struct CollectedDeclarations {
    pub declarations: DeclarationMap,
    places: HashMap<String, Span>,
}

impl CollectedDeclarations {
    fn add(&mut self, declared: &Declared, file: &Arc<SourceFile>, findings: &Findings) {
        let name = &declared.declaration.name;
        if let Some(first) = self.places.get(name) {
            let message = msg!("`{name}` is declared twice in the same scope");
            let diagnostic = Diagnostic::error("duplicate-variable", message, file, declared.span);
            let help = "keep only one of them, or rename one";
            findings.report(diagnostic.with_help(help).with_related("first declared here", file, *first));
            return;
        }
        self.places.insert(name.clone(), declared.span);
        self.declarations.insert(name.clone(), declared.declaration.clone());
    }
}

/// Collects the declarations of `list`, a list in the scope `place`, that belong to the scope `wanted`.
pub fn collect(
    into: &mut CollectedDeclarations,
    list: &[Declared],
    place: Scope,
    wanted: Scope,
    file: &Arc<SourceFile>,
    findings: &Findings,
) {
    for declared in list.iter().filter(|declared| declared.scope.unwrap_or(place) == wanted) {
        into.add(declared, file, findings);
    }
}

/// Reports declarations that could never be read: in a scope narrower than that of their list, or with a name of the engine.
pub(crate) fn check_list(list: &[Declared], place: Scope, file: &Arc<SourceFile>, findings: &Findings) {
    for declared in list {
        let name = &declared.declaration.name;
        if let Some(scope) = declared.scope.filter(|scope| *scope > place) {
            let message = msg!(
                "`{name}` is declared in a {place}, but has the narrower scope `{scope}`",
                place = Message::word(place.name())
            );
            let help =
                msg!("move it to the `declare` of that {scope}, or omit `scope`", scope = Message::word(scope.name()));
            findings.report(Diagnostic::error("scope-too-narrow", message, file, declared.span).with_help(help));
        }
        check_reserved(name, declared.span, file, findings);
    }
}

pub(crate) fn check_reserved(name: &str, span: Span, file: &Arc<SourceFile>, findings: &Findings) {
    if HIDEABLE_NAMES.contains(&name) {
        let message = msg!("the variable `{name}` hides the value of the engine with this name");
        let help = "choose another name if texts or expressions of this script need the value of the engine; prompts get it in any case";
        findings.report(Diagnostic::warning("hidden-engine-name", message, file, span).with_help(help));
    } else if ENGINE_NAMES.contains(&name) {
        let message = msg!("the variable `{name}` is set by the engine, so a script cannot set it");
        let reserved = ENGINE_NAMES.iter().filter(|name| !HIDEABLE_NAMES.contains(name));
        let help = msg!("choose another name; the engine sets {}", Message::names(reserved));
        findings.report(Diagnostic::error("reserved-name", message, file, span).with_help(help));
    }
}
