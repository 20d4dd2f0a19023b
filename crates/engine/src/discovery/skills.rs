//! The skills of a project: those in its folder `skills/`, and those that a script names by their paths.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::discovery::documents::seems_ours;
use crate::discovery::names::PathNames;
use crate::discovery::walk::USUAL_FOLDERS;
use crate::discovery::walk::walk;
use crate::discovery::written_path::{bytes, place};
use crate::project::{CONFIG_FILE, absolute};
use bcc_check::document_paths::DocumentPathError;
use bcc_check::library::{BrokenFile, SkillLibrary, SkillPathTarget};
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::{ScriptDocument, document, root_key};
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;

const FOLDER: &str = "skills";

/// Every skill below the folder of the project. What is wrong with their files is told where these are checked.
pub fn library(project: &Path, names: &PathNames) -> SkillLibrary {
    let mut library = SkillLibrary::default();
    library.whole = true;
    let Some(folder) = folder(project) else { return library };
    let walked = walk(&[folder], names);
    library.whole = walked.diagnostics.is_empty();
    for found in walked.found {
        match skill(&found.path, &found.shown) {
            Read::Skill(file, skill) => library.add(&file, &skill),
            Read::Other => {}
            Read::Unreadable(diagnostics) => {
                library.whole = false;
                library.broken.push(BrokenFile { path: None, diagnostics });
            }
            Read::Refused(_) => library.whole = false,
        }
    }
    library
}

/// The folder of the skills. A project that nothing marks as one is taken for the folder that a file lies in: the skills are
/// then beside its `scripts/`, wherever that is.
pub fn folder(project: &Path) -> Option<PathBuf> {
    let others = around(project).map(|parent| parent.join(FOLDER));
    std::iter::once(project.join(FOLDER)).chain(others).find(|folder| folder.is_dir())
}

/// What may be the project in truth, where nothing marks one: the folders that hold a usual folder which `project` lies in.
fn around(project: &Path) -> impl Iterator<Item = &Path> {
    let usual = |name: &OsStr| USUAL_FOLDERS.iter().any(|usual| name == *usual);
    // Sessions that were kept there say nothing of it: the first run would hide the skills from the second.
    let marked = [CONFIG_FILE, "_system"].iter().any(|name| project.join(name).exists());
    let unmarked = project.ancestors().filter(move |_| !marked);
    unmarked.filter(move |folder| folder.file_name().is_some_and(usual)).filter_map(Path::parent)
}

/// The library for a script that names these paths. `script` is where the script lies, absolute.
pub fn with_paths<'p>(
    library: &SkillLibrary,
    paths: impl Iterator<Item = &'p str>,
    (script, project): (&Path, &Path),
    names: &PathNames,
) -> SkillLibrary {
    let mut library = library.clone();
    let project = absolute(around(project).next().unwrap_or(project));
    for path in paths {
        let named = match place(path, script) {
            Ok(real) => named(path, (&real, &project), names, &mut library),
            Err(refused) => SkillPathTarget::Refused(refused),
        };
        library.name(path, named);
    }
    library
}

fn named(
    path: &str,
    (real, project): (&Path, &Path),
    names: &PathNames,
    library: &mut SkillLibrary,
) -> SkillPathTarget {
    if !real.starts_with(project) {
        return SkillPathTarget::Refused(DocumentPathError::Outside);
    }
    match skill(real, &names.shown(real)) {
        Read::Skill(file, skill) => {
            library.prefer(&file, &skill);
            SkillPathTarget::Skill(skill.id.value)
        }
        Read::Other => SkillPathTarget::Other,
        Read::Unreadable(diagnostics) => {
            library.broken.push(BrokenFile { path: Some(path.to_owned()), diagnostics });
            SkillPathTarget::Unreadable
        }
        Read::Refused(refused) => SkillPathTarget::Refused(refused),
    }
}

enum Read {
    Skill(Arc<SourceFile>, Box<WrittenSkill>),
    Other,
    /// A text that is broken, with what is wrong with it.
    Unreadable(Vec<Diagnostic>),
    Refused(DocumentPathError),
}

fn skill(path: &Path, shown: &str) -> Read {
    let bytes = match bytes(path) {
        Ok(bytes) => bytes,
        Err(refused) => return Read::Refused(refused),
    };
    let ours = seems_ours(&bytes);
    let file = match SourceFile::from_bytes(shown, bytes) {
        Ok(file) => Arc::new(file),
        Err(diagnostic) => return Read::Unreadable(vec![*diagnostic]),
    };
    let parsed = parse(&file);
    let findings = Findings::new();
    findings.extend(parsed.diagnostics);
    let Some(root) = parsed.root else {
        return if ours { Read::Unreadable(findings.into_vec()) } else { Read::Other };
    };
    let key = root_key(&root);
    if key.is_some_and(|key| !["skill", "technique_id"].contains(&key)) || key.is_none() && !ours {
        return Read::Other;
    }
    match document(&file, &root, &findings) {
        Some(ScriptDocument::Skill(skill)) => Read::Skill(file, skill),
        _ => Read::Unreadable(findings.into_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skills_of_a_project_are_known_by_their_ids() {
        let project = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            std::fs::create_dir_all(project.path().join("skills/deep")).unwrap();
            std::fs::write(project.path().join("skills").join(name), text).unwrap();
        };
        let actions = "actions: [{ action_type: ai_say, action_id: say, config: { content: 好 } }]";
        put("a.yaml", &format!("skill: {{ skill_id: comfort, outputs: [mood], {actions} }}"));
        put("b.yaml", &format!("skill: {{ skill_id: comfort, {actions} }}"));
        put("deep/c.yml", &format!("technique_id: breathe\ntopic: {{ topic_id: t, {actions} }}"));
        put("d.yaml", "skill: {");
        put("e.yaml", "services: {}");
        let names = PathNames::seen_from(project.path().to_path_buf());
        let library = library(project.path(), &names);
        assert_eq!(library.ids().collect::<Vec<_>>(), ["breathe", "comfort"]);
        assert!(!library.whole, "d.yaml may hold any skill");
        let comfort = library.skill("comfort").unwrap();
        assert_eq!((comfort.file.name(), comfort.outputs.len()), ("skills/a.yaml", 1), "the first of two");
    }
}
