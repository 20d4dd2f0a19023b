//! Reads the skills of a project: those in its folder `skills/`, and those that a script refers to by path.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::discovery::documents::is_document;
use crate::discovery::names::PathNames;
use crate::discovery::walk::USUAL_FOLDERS;
use crate::discovery::walk::walk;
use crate::discovery::written_path::{read, resolve, unusable};
use crate::project::{CONFIG_FILE, absolute};
use bcc_check::document_paths::DocumentPathError;
use bcc_check::library::{BrokenFile, SkillLibrary, SkillPathTarget};
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::{ScriptDocument, document, root_key};
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::{MAX_FILE_BYTES, SourceFile};

const FOLDER: &str = "skills";

/// All skills in the folder of the project. Errors in their files are reported by the check of these files.
pub fn library(project: &Path, names: &PathNames) -> SkillLibrary {
    let mut library = SkillLibrary::default();
    library.complete = true;
    let Some(folder) = folder(project) else { return library };
    let walked = walk(&[folder], names);
    library.complete = walked.diagnostics.is_empty();
    for found in walked.found {
        match skill(found.read(MAX_FILE_BYTES as u64).map_err(|error| unusable(&error)), &found.shown) {
            Read::Skill(file, skill) => library.add(&file, &skill),
            Read::Other => {}
            Read::Unreadable(diagnostics) => {
                library.complete = false;
                library.broken.push(BrokenFile { path: None, diagnostics });
            }
            Read::Rejected(_) => library.complete = false,
        }
    }
    library
}

/// The folder of the skills. If nothing marks the project directory, it is the folder of a script, and the skills may be next
/// to an enclosing `scripts/`.
pub fn folder(project: &Path) -> Option<PathBuf> {
    let candidates = possible_projects(project).map(|parent| parent.join(FOLDER));
    std::iter::once(project.join(FOLDER)).chain(candidates).find(|folder| folder.is_dir())
}

/// The possible project directories of an unmarked `project`: the parents of its enclosing usual folders, such as `scripts/`.
pub(crate) fn possible_projects(project: &Path) -> impl Iterator<Item = &Path> {
    let usual = |name: &OsStr| USUAL_FOLDERS.iter().any(|usual| name == *usual);
    // A folder `.bcc` does not mark it here: the store of the first run would hide the skills from the second run.
    let marked = [CONFIG_FILE, "_system"].iter().any(|name| project.join(name).exists());
    let unmarked = project.ancestors().filter(move |_| !marked);
    unmarked.filter(move |folder| folder.file_name().is_some_and(usual)).filter_map(Path::parent)
}

/// The library for a script that refers to skills by these paths. `script` is the absolute path of the script.
pub fn with_paths<'p>(
    library: &SkillLibrary,
    paths: impl Iterator<Item = &'p str>,
    (script, project): (&Path, &Path),
    names: &PathNames,
) -> SkillLibrary {
    let mut library = library.clone();
    let project = absolute(possible_projects(project).next().unwrap_or(project));
    for path in paths {
        let target = match resolve(path, script) {
            Ok(real) => skill_at_path(path, (&real, &project), names, &mut library),
            Err(error) => SkillPathTarget::Unusable(error),
        };
        library.set_path_target(path, target);
    }
    library
}

fn skill_at_path(
    path: &str,
    (real, project): (&Path, &Path),
    names: &PathNames,
    library: &mut SkillLibrary,
) -> SkillPathTarget {
    if !real.starts_with(project) {
        return SkillPathTarget::Unusable(DocumentPathError::Outside);
    }
    match skill(read(real), &names.display_name(real)) {
        Read::Skill(file, skill) => {
            library.prefer(&file, &skill);
            SkillPathTarget::Skill(skill.id.value)
        }
        Read::Other => SkillPathTarget::Other,
        Read::Unreadable(diagnostics) => {
            library.broken.push(BrokenFile { path: Some(path.to_owned()), diagnostics });
            SkillPathTarget::Unreadable
        }
        Read::Rejected(error) => SkillPathTarget::Unusable(error),
    }
}

enum Read {
    Skill(Arc<SourceFile>, Box<WrittenSkill>),
    Other,
    /// An invalid file, with its errors.
    Unreadable(Vec<Diagnostic>),
    Rejected(DocumentPathError),
}

fn skill(bytes: Result<Vec<u8>, DocumentPathError>, shown: &str) -> Read {
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return Read::Rejected(error),
    };
    let is_document = is_document(&bytes);
    let file = match SourceFile::from_bytes(shown, bytes) {
        Ok(file) => Arc::new(file),
        Err(diagnostic) => return Read::Unreadable(vec![*diagnostic]),
    };
    let parsed = parse(&file);
    let findings = Findings::new();
    findings.extend(parsed.diagnostics);
    let Some(root) = parsed.root else {
        return if is_document { Read::Unreadable(findings.into_vec()) } else { Read::Other };
    };
    let key = root_key(&root);
    if key.is_some_and(|key| !["skill", "technique_id"].contains(&key)) || key.is_none() && !is_document {
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
    fn the_skills_of_a_project_are_found_by_id() {
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
        let names = PathNames::relative_to(project.path().to_path_buf());
        let library = library(project.path(), &names);
        assert_eq!(library.ids().collect::<Vec<_>>(), ["breathe", "comfort"]);
        assert!(!library.complete, "d.yaml may hold any skill");
        let comfort = library.skill("comfort").unwrap();
        assert_eq!((comfort.file.name(), comfort.outputs.len()), ("skills/a.yaml", 1), "the first of two");
    }
}
