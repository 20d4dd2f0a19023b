//! `unknown-skill-file`: a path in `skills` leads to no skill.

use crate::callables::paths;
use crate::facts::Facts;
use crate::library::Named;
use crate::rules::rule::Rule;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;

const SLUG: &str = "unknown-skill-file";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: true, check };

fn check(facts: &Facts<'_>, findings: &Findings) {
    for path in facts.script.into_iter().flat_map(paths) {
        let shown = shortened(&path.value);
        let (message, help) = match facts.library.named(&path.value) {
            None | Some(Named::Skill(_) | Named::Unreadable) => continue,
            Some(Named::Refused(refused)) => refused.words(&shown, "skill", "script", "../skills/comfort.yaml"),
            Some(Named::Other) => (
                format!("the file `{shown}` holds no skill"),
                "a skill's file begins with `skill:`; write the path of one".to_owned(),
            ),
        };
        findings.report(Diagnostic::error(SLUG, message, facts.file, path.span).with_help(help));
    }
}
