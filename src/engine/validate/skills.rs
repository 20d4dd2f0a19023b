//! The skills of a project, as far as those who call them must know them: read once, whatever files are checked.

use std::path::Path;
use std::sync::Arc;

use crate::check::library::{Library, SkillOutline};
use crate::engine::validate::names::Names;
use crate::engine::validate::read::{Reading, document};
use crate::engine::validate::walk::walk;
use crate::script::findings::Findings;
use crate::script::read::{Document, document as meaning};
use crate::source::yaml::parse;

/// The skills below `skills/` of a project. What is wrong with them is told where they are checked themselves; one that
/// cannot be read is none.
pub fn library(project: &Path, names: &Names) -> Library {
    let mut library = Library::default();
    let folder = project.join("skills");
    if !folder.is_dir() {
        return library;
    }
    for found in walk(&[folder], names).found {
        let Reading::Text(file) = document(&found) else { continue };
        let unheard = Findings::new();
        let skill = parse(&file).root.and_then(|root| meaning(&file, &root, &unheard));
        if let Some(Document::Skill(skill)) = skill {
            let outline = SkillOutline::of(&Arc::clone(&file), &skill);
            library.skills.entry(outline.id.clone()).or_insert(outline);
        }
    }
    library
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
        assert_eq!(library.skills.keys().collect::<Vec<_>>(), ["breathe", "comfort"]);
        let comfort = &library.skills["comfort"];
        assert_eq!((comfort.file.name(), comfort.outputs.len()), ("skills/a.yaml", 1), "the first of two");
    }
}
