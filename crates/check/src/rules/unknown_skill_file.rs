//! `unknown-skill-file`: a path in `skills` does not lead to a skill.

use crate::callables::paths;
use crate::library::SkillPathTarget;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::message::msg;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;

const SLUG: &str = "unknown-skill-file";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: true, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    for path in model.script.into_iter().flat_map(paths) {
        let shown = shortened(&path.value);
        let (message, help) = match model.library.path_target(&path.value) {
            None | Some(SkillPathTarget::Skill(_) | SkillPathTarget::Unreadable) => continue,
            Some(SkillPathTarget::Unusable(error)) => {
                error.message_and_help(&shown, "skill", "script", "../skills/comfort.yaml")
            }
            Some(SkillPathTarget::Other) => (
                msg!("the file `{shown}` does not contain a skill"),
                msg!("a skill file starts with `skill:`; write the path of such a file"),
            ),
        };
        findings.report(Diagnostic::error(SLUG, message, model.file, path.span).with_help(help));
    }
}
