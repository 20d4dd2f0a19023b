//! The skills of a project: those in its folder `skills/`, and those that a script names by their paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::check::library::{Library, Named};
use crate::engine::files::read_bounded;
use crate::engine::project::{absolute, is_marked};
use crate::engine::validate::documents::seems_ours;
use crate::engine::validate::names::Names;
use crate::engine::validate::roots::USUAL_FOLDERS;
use crate::engine::validate::walk::walk;
use crate::script::findings::Findings;
use crate::script::read::{Document, document, root_key};
use crate::script::skill::WrittenSkill;
use crate::source::text::{MAX_FILE_BYTES, SourceFile};
use crate::source::yaml::parse;

/// The folder of a project in which its skills lie.
const FOLDER: &str = "skills";

/// Every skill below the folder of the project. What is wrong with their files is told where these are checked.
pub fn library(project: &Path, names: &Names) -> Library {
    let mut library = Library::default();
    library.whole = true;
    let Some(folder) = folder(project) else { return library };
    let walked = walk(&[folder], names);
    library.whole = walked.diagnostics.is_empty();
    for found in walked.found {
        match skill(&found.path, &found.shown) {
            Read::Skill(file, skill) => library.add(&file, &skill),
            Read::Other => {}
            Read::Unreadable => library.whole = false,
        }
    }
    library
}

/// The folder of the skills. A project that nothing marks as one is taken for the folder that a file lies in: the skills are
/// then beside its `scripts/`, wherever that is.
pub fn folder(project: &Path) -> Option<PathBuf> {
    let own = project.join(FOLDER);
    let beside = |folder: &Path| {
        let usual = folder.file_name().is_some_and(|name| USUAL_FOLDERS.iter().any(|usual| name == *usual));
        folder.parent().filter(|_| usual).map(|parent| parent.join(FOLDER))
    };
    let others = project.ancestors().filter(|_| !is_marked(project)).filter_map(beside);
    std::iter::once(own).chain(others).find(|folder| folder.is_dir())
}

/// The library for a script that names these paths. `script` is where the script lies, absolute.
pub fn with_paths<'p>(
    library: &Library,
    paths: impl Iterator<Item = &'p str>,
    (script, project): (&Path, &Path),
    names: &Names,
) -> Library {
    let mut library = library.clone();
    let project = absolute(project);
    for path in paths {
        let place = script.parent().unwrap_or(script).join(path);
        let named = named(&place, &project, names, &mut library);
        library.name(path, named);
    }
    library
}

fn named(place: &Path, project: &Path, names: &Names, library: &mut Library) -> Named {
    let real = absolute(place);
    if !plain(&real).starts_with(project) {
        return Named::Outside;
    }
    if !real.exists() {
        return Named::Absent;
    }
    match skill(&real, &names.shown(&real)) {
        Read::Skill(file, skill) => {
            library.prefer(&file, &skill);
            Named::Skill(skill.id.value)
        }
        Read::Other => Named::Other,
        Read::Unreadable => Named::Unreadable,
    }
}

/// The path without `.` and `..`: one that does not exist cannot be resolved by the system.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

enum Read {
    Skill(Arc<SourceFile>, Box<WrittenSkill>),
    Other,
    Unreadable,
}

fn skill(path: &Path, shown: &str) -> Read {
    let Ok(bytes) = read_bounded(path, MAX_FILE_BYTES as u64) else { return Read::Unreadable };
    let ours = seems_ours(&bytes);
    let Ok(file) = SourceFile::from_bytes(shown, bytes) else { return Read::Unreadable };
    let file = Arc::new(file);
    let Some(root) = parse(&file).root else { return if ours { Read::Unreadable } else { Read::Other } };
    match root_key(&root) {
        Some("skill" | "technique_id") => {}
        Some(_) => return Read::Other,
        None => return if ours { Read::Unreadable } else { Read::Other },
    }
    match document(&file, &root, &Findings::new()) {
        Some(Document::Skill(skill)) => Read::Skill(file, skill),
        _ => Read::Unreadable,
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
        let names = Names::seen_from(project.path().to_path_buf());
        let library = library(project.path(), &names);
        assert_eq!(library.ids().collect::<Vec<_>>(), ["breathe", "comfort"]);
        assert!(!library.whole, "d.yaml may hold any skill");
        let comfort = library.skill("comfort").unwrap();
        assert_eq!((comfort.file.name(), comfort.outputs.len()), ("skills/a.yaml", 1), "the first of two");
    }
}
