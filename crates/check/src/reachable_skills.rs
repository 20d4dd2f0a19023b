//! The skills that a script reaches in files of their own: each is checked where it stands, and runs with the script.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::callables::paths;
use crate::context::CheckContext;
use crate::documents::{RequiredInputs, RuleSelection, skill};
use crate::library::{SkillLibrary, SkillPathTarget};
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::{ScriptDocument, document};
use bcc_lang::script::script::Script;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::text::AuthorTexts;
use bcc_runtime::program::program::{Needing, Skill};

#[derive(Default)]
pub struct Reached {
    /// The skills; one whose file is broken is missing.
    pub skills: Vec<Skill>,
    pub diagnostics: Vec<Diagnostic>,
    pub broken: bool,
    /// What the project must allow for them, each with the first action that needs it.
    pub permits: BTreeMap<&'static str, Needing>,
}

/// Follows a script to all that it calls, inserts, or names by a path, and what that calls. `needs` are those of the script
/// itself; what it needs and nobody has is reported to `findings`.
pub fn reached(
    script: &Script,
    needs: Vec<RequiredInputs>,
    against: &CheckContext<'_>,
    texts: &mut AuthorTexts,
    findings: &Findings,
) -> Reached {
    // What a skill calls is first looked for in the script, as what the script itself calls.
    let mut library = against.library.clone();
    let inline = script.inline_skills();
    inline.iter().for_each(|skill| library.prefer(&script.file, skill));
    let own: BTreeSet<&str> = inline.iter().map(|skill| skill.id.value.as_str()).collect();
    let against = CheckContext {
        library: &library,
        templates: Arc::clone(&against.templates),
        models: against.models,
        ..*against
    };
    let mut reached = Reached::default();
    let mut open: VecDeque<String> = VecDeque::new();
    for path in paths(script) {
        match library.named(&path.value) {
            Some(SkillPathTarget::Skill(id)) => open.push_back(id.clone()),
            Some(SkillPathTarget::Unreadable) => {
                let broken = library.broken.iter().filter(|file| file.path.as_ref() == Some(&path.value));
                reached.tell(broken.flat_map(|file| file.diagnostics.clone()).collect());
            }
            None | Some(SkillPathTarget::Other | SkillPathTarget::Refused(_)) => {}
        }
    }
    follow(needs, &library, (&script.file, findings), &mut open, &mut reached);
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop_front() {
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
            let walked = skill(&file, &written, &against, texts, &findings, RuleSelection::Essential);
            reached.skills.extend(walked.tree);
            for (what, needing) in walked.permits {
                reached.permits.entry(what).or_insert(needing);
            }
            follow(walked.needs, &library, (&file, &findings), &mut open, &mut reached);
        }
        reached.tell(findings.into_vec());
    }
    reached
}

impl Reached {
    fn tell(&mut self, mut diagnostics: Vec<Diagnostic>) {
        self.broken |= diagnostics.iter().any(Diagnostic::is_error);
        // A file that cannot be read is met wherever something may be in it.
        diagnostics.retain(|new| {
            let same = |old: &Diagnostic| {
                (old.rule, old.span, &old.message) == (new.rule, new.span, &new.message)
                    && old.file.name() == new.file.name()
            };
            !self.diagnostics.iter().any(same)
        });
        self.diagnostics.extend(diagnostics);
    }
}

/// Goes on to the skills that a file needs. Where some files could not be read, no rule says that a skill is nowhere; but what
/// is not there cannot run.
fn follow(
    needs: Vec<RequiredInputs>,
    library: &SkillLibrary,
    (file, findings): (&Arc<SourceFile>, &Findings),
    open: &mut VecDeque<String>,
    reached: &mut Reached,
) {
    for RequiredInputs { id, inserted } in needs {
        if library.skill(&id.value).is_some() {
            open.push_back(id.value);
        } else if !findings.broken().holds(id.span) {
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
            reached.tell(broken.flat_map(|file| file.diagnostics.clone()).collect());
        }
    }
}
