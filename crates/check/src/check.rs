//! From a parsed file to a [`Program`], or to all that is wrong with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::context::CheckContext;
use crate::documents::{RuleSelection, session, skill};
use crate::reachable_skills::reached;
use crate::secrets::secrets;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::kernel::WrittenKernel;
use bcc_lang::script::read::{ScriptDocument, document, read};
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::shared::unsure_where_shared;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{ParsedYaml, YamlNode};
use bcc_lang::template::text::AuthorTexts;
use bcc_runtime::notebook::kernel::contract::{KernelSettings, OnResume};
use bcc_runtime::program::limits::Budget;
use bcc_runtime::program::program::Program;

/// Checks the script in a parsed file and the skills that it reaches, as `run` does: what could not be run is an error. Gives
/// the program when there is no error, and everything that was found, by file and in the order of each.
pub fn check(
    file: &Arc<SourceFile>,
    parsed: ParsedYaml,
    against: &CheckContext<'_>,
) -> (Option<Program>, Vec<Diagnostic>) {
    let findings = Findings::new();
    findings.extend(parsed.diagnostics);
    let root = parsed.root;
    let in_order = |findings| in_order(findings, file, root.as_deref());
    let Some(script) = root.as_ref().and_then(|root| read(file, root, &findings)) else {
        return (None, in_order(findings));
    };
    let mut texts = AuthorTexts::new();
    let walked = session(&script, against, &mut texts, &findings, RuleSelection::Essential);
    let reached = reached(&script, walked.needs, against, &mut texts, &findings);
    let sound = !findings.has_errors() && !reached.broken;
    let mut diagnostics = in_order(findings);
    diagnostics.extend(reached.diagnostics);
    sort(&mut diagnostics);
    let program = walked.tree.filter(|_| sound).map(|tree| Program {
        file: Arc::clone(file),
        id: script.id.value.clone(),
        name: script.name.clone(),
        who: script.who.clone().unwrap_or_else(|| "咨询师".into()),
        user: script.user.clone().unwrap_or_else(|| "来访者".into()),
        goal: tree.goal,
        model: script.model.as_ref().map(|model| model.value.clone()),
        history_messages: script.history.messages as usize,
        history_chars: script.history.chars as usize,
        globals: tree.globals,
        declarations: tree.declarations,
        phases: tree.phases,
        routes: tree.routes,
        triggers: tree.triggers,
        budget: Budget::of(script.budget.as_ref()),
        custom: against.custom.clone(),
        // Where both need something, the script's own action is named.
        needs: reached.permits.into_iter().chain(walked.permits).collect(),
        kernel: kernel(script.kernel.as_ref()),
        // What is reached in files is nothing that the script itself holds.
        skills: tree.skills.into_iter().chain(reached.skills).map(|skill| (skill.id.clone(), skill)).collect(),
        inserts: walked.inserts,
        texts,
        templates: Arc::clone(&against.templates),
    });
    (program, diagnostics)
}

fn kernel(written: Option<&WrittenKernel>) -> KernelSettings {
    let usual = KernelSettings::default();
    let Some(written) = written else { return usual };
    KernelSettings {
        name: written.name.clone().unwrap_or(usual.name),
        on_resume: if written.on_resume == Some("rerun") { OnResume::Rerun } else { OnResume::Fresh },
        timeout: written.timeout.unwrap_or(usual.timeout),
        start_timeout: written.start_timeout.unwrap_or(usual.start_timeout),
        idle_timeout: written.idle_timeout.unwrap_or(usual.idle_timeout),
    }
}

#[derive(Debug)]
pub struct Examined {
    pub diagnostics: Vec<Diagnostic>,
    /// The names that the document gives values to, for templates that use them; none when not all of it could be read.
    pub names: Option<BTreeSet<String>>,
}

/// Checks whatever document a parsed file holds with every rule, as `validate` does.
pub fn examine(file: &Arc<SourceFile>, parsed: ParsedYaml, against: &CheckContext<'_>) -> Examined {
    let findings = Findings::new();
    let broken = parsed.root.is_none();
    findings.extend(parsed.diagnostics);
    let mut names = (!broken).then(BTreeSet::new);
    findings.extend(secrets(file));
    let root = parsed.root;
    match root.as_ref().and_then(|root| document(file, root, &findings)) {
        Some(ScriptDocument::Session(script)) => {
            names = session(&script, against, &mut AuthorTexts::new(), &findings, RuleSelection::All).names;
        }
        Some(ScriptDocument::Skill(written)) => {
            names = skill(file, &written, against, &mut AuthorTexts::new(), &findings, RuleSelection::All).names;
        }
        Some(ScriptDocument::Workflow(span)) => {
            let message = "this file is a workflow state file, which this release cannot check or run yet";
            let help = "`bcc-script schema --list` lists what this release supports";
            findings.report(Diagnostic::error("not-supported-yet", message, file, span).with_help(help));
        }
        // What it says about its script is checked where the script is known.
        Some(ScriptDocument::Test(_)) => {}
        None => names = None,
    }
    Examined { diagnostics: in_order(findings, file, root.as_deref()), names }
}

/// The findings in the order of the file, each once: an alias repeats what stands at its anchor, and all that is wrong there.
fn in_order(findings: Findings, file: &Arc<SourceFile>, root: Option<&YamlNode>) -> Vec<Diagnostic> {
    let mut diagnostics = findings.into_vec();
    sort(&mut diagnostics);
    diagnostics
        .dedup_by(|a, b| (a.rule, a.span, &a.message) == (b.rule, b.span, &b.message) && Arc::ptr_eq(&a.file, &b.file));
    if let Some(root) = root {
        unsure_where_shared(file, root, &mut diagnostics);
    }
    diagnostics
}
