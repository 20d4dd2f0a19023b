//! Checks the skill files that a script reaches; the skills run with the script.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::callables::paths;
use crate::context::CheckContext;
use crate::documents::{RequiredInputs, RuleSelection, skill};
use crate::library::{SkillLibrary, SkillPathTarget};
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::{ScriptDocument, document};
use bcc_lang::script::script::Script;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::text::AuthorTexts;
use bcc_runtime::program::program::{ActionNeedingPermission, Skill};

#[derive(Default)]
pub struct Reached {
    /// The skills, except those whose file is broken.
    pub skills: Vec<Skill>,
    pub diagnostics: Vec<Diagnostic>,
    pub broken: bool,
    /// The permissions that they need, each with the first action that needs it.
    pub permissions: BTreeMap<String, ActionNeedingPermission>,
    /// The behavior servers that they ask, each with the first action that does.
    pub servers: BTreeMap<String, ActionNeedingPermission>,
    /// Their expressions that certainly cannot be evaluated.
    pub mistaken_expressions: Vec<Expr>,
}

/// Checks the skills that a script calls, inserts or names by a path, and the skills that those need. `needs` are the needs
/// of the script itself; missing skills are reported to `findings`.
pub fn reached(
    script: &Script,
    needs: Vec<RequiredInputs>,
    context: &CheckContext<'_>,
    texts: &mut AuthorTexts,
    findings: &Findings,
) -> Reached {
    // Calls of a skill are resolved in the script first, like the calls of the script itself.
    let mut library = context.library.clone();
    let inline = script.inline_skills();
    inline.iter().for_each(|skill| library.prefer(&script.file, skill));
    let own: BTreeSet<&str> = inline.iter().map(|skill| skill.id.value.as_str()).collect();
    let context = CheckContext {
        library: &library,
        templates: Arc::clone(&context.templates),
        models: context.models,
        ..*context
    };
    let mut reached = Reached::default();
    let mut pending: VecDeque<String> = VecDeque::new();
    for path in paths(script) {
        match library.path_target(&path.value) {
            Some(SkillPathTarget::Skill(id)) => pending.push_back(id.clone()),
            Some(SkillPathTarget::Unreadable) => {
                let broken = library.broken.iter().filter(|file| file.path.as_ref() == Some(&path.value));
                reached.add_diagnostics(broken.flat_map(|file| file.diagnostics.clone()).collect());
            }
            None | Some(SkillPathTarget::Other | SkillPathTarget::Unusable(_)) => {}
        }
    }
    add_needs(needs, &library, (&script.file, findings), &mut pending, &mut reached);
    let mut seen = BTreeSet::new();
    while let Some(id) = pending.pop_front() {
        if own.contains(id.as_str()) || !seen.insert(id.clone()) {
            continue;
        }
        let Some(outline) = library.skill(&id) else { continue };
        let file = Arc::clone(&outline.file);
        let findings = Findings::new();
        let parsed = parse(&file);
        findings.extend(parsed.diagnostics);
        let written = parsed.root.and_then(|root| document(&file, &root, &findings));
        if let Some(ScriptDocument::Skill(written)) = written {
            let checked = skill(&file, &written, &context, texts, &findings, RuleSelection::Essential);
            reached.skills.extend(checked.tree);
            reached.mistaken_expressions.extend(checked.mistaken_expressions);
            for (what, needing) in checked.permissions {
                reached.permissions.entry(what).or_insert(needing);
            }
            for (server, asking) in checked.servers {
                reached.servers.entry(server).or_insert(asking);
            }
            add_needs(checked.needs, &library, (&file, &findings), &mut pending, &mut reached);
        }
        reached.add_diagnostics(findings.into_vec());
    }
    reached
}

impl Reached {
    fn add_diagnostics(&mut self, mut diagnostics: Vec<Diagnostic>) {
        self.broken |= diagnostics.iter().any(Diagnostic::is_error);
        // A broken file is reported wherever it may contain a missing skill: remove duplicates.
        diagnostics.retain(|added| {
            let same = |existing: &Diagnostic| {
                (existing.rule, existing.span, &existing.message) == (added.rule, added.span, &added.message)
                    && existing.file.name() == added.file.name()
            };
            !self.diagnostics.iter().any(same)
        });
        self.diagnostics.extend(diagnostics);
    }
}

/// Queues the skills that a file needs. If some files could not be read, no rule reports a missing skill; this function
/// does, because a script cannot run without it.
fn add_needs(
    needs: Vec<RequiredInputs>,
    library: &SkillLibrary,
    (file, findings): (&Arc<SourceFile>, &Findings),
    pending: &mut VecDeque<String>,
    reached: &mut Reached,
) {
    for RequiredInputs { id, inserted } in needs {
        if library.skill(&id.value).is_some() {
            pending.push_back(id.value);
        } else if !findings.error_spans().contains(id.span) {
            let (rule, what) =
                if inserted { ("unknown-insert", "skill or action") } else { ("unknown-skill", "skill") };
            let message =
                msg!("there is no {what} `{}` that can be read", shortened(&id.value), what = Message::word(what));
            let help = "some skill files cannot be read: fix them, or correct the name";
            findings.report(Diagnostic::error(rule, message, file, id.span).with_help(help));
            let about = |file: &&crate::library::BrokenFile| {
                file.diagnostics.iter().any(|found| found.file.text().contains(&id.value))
            };
            let broken = library.broken.iter().filter(about);
            reached.add_diagnostics(broken.flat_map(|file| file.diagnostics.clone()).collect());
        }
    }
}
