//! The texts of new files, in both languages: plain files in this folder with placeholders for names.

use crate::scaffold::draft::FileDraft;
use crate::schemas;
use bcc_lang::message::language::Language;
use bcc_lang::template::builtin::BUILTINS;

/// The schemas that a new project gets for editors, by their names in `schema`.
pub(crate) const SCHEMAS: [&str; 6] = ["script", "skill", "test", "document", "template", "config"];

#[derive(Debug)]
pub struct ScaffoldTexts {
    config: &'static str,
    readme: &'static str,
    gitignore: &'static str,
    first_talk: &'static str,
    small_step: &'static str,
    test_first_talk: &'static str,
    test_quiet_guest: &'static str,
    /// A script with one question; `@ID@` and `@NAME@` are placeholders for its name.
    pub new_script: &'static str,
    /// A skill with one question; `@ID@` is a placeholder for its name.
    pub new_skill: &'static str,
    /// A test; `@NAME@`, `@SCRIPT@`, `@SAID@` and `@STATUS@` are placeholders.
    pub new_test: &'static str,
}

macro_rules! texts {
    ($folder:literal) => {
        ScaffoldTexts {
            config: include_str!(concat!($folder, "/bcc-script.toml")),
            readme: include_str!(concat!($folder, "/README.md")),
            gitignore: include_str!(concat!($folder, "/gitignore")),
            first_talk: include_str!(concat!($folder, "/first_talk.yaml")),
            small_step: include_str!(concat!($folder, "/small_step.yaml")),
            test_first_talk: include_str!(concat!($folder, "/test_first_talk.yaml")),
            test_quiet_guest: include_str!(concat!($folder, "/test_quiet_guest.yaml")),
            new_script: include_str!(concat!($folder, "/new_script.yaml")),
            new_skill: include_str!(concat!($folder, "/new_skill.yaml")),
            new_test: include_str!(concat!($folder, "/new_test.yaml")),
        }
    };
}

static ENGLISH: ScaffoldTexts = texts!("english");
static CHINESE: ScaffoldTexts = texts!("chinese");

pub fn texts(language: Language) -> &'static ScaffoldTexts {
    match language {
        Language::English | Language::Pseudo => &ENGLISH,
        Language::Chinese => &CHINESE,
    }
}

/// The folder of the built-in templates in `language`, as in [`BUILTINS`].
fn templates(language: Language) -> &'static str {
    match language {
        Language::English | Language::Pseudo => "custom/english",
        Language::Chinese => "default",
    }
}

/// All files of a new project `name` with the scheme `scheme`, in the order in which they are listed for the user.
pub fn project(language: Language, name: &str, scheme: &str) -> Vec<FileDraft> {
    let texts = texts(language);
    let filled = |text: &str| text.replace("@SCHEME@", scheme).replace("@NAME@", name);
    let mut drafts = vec![
        FileDraft::new("README.md", filled(texts.readme)),
        FileDraft::new("bcc-script.toml", filled(texts.config)),
        FileDraft::new("scripts/first_talk.yaml", texts.first_talk),
        FileDraft::new("skills/small_step.yaml", texts.small_step),
        FileDraft::new("tests/first_talk.yaml", texts.test_first_talk),
        FileDraft::new("tests/quiet_guest.yaml", texts.test_quiet_guest),
    ];
    let copied = BUILTINS.iter().filter(|file| file.place == templates(language));
    drafts
        .extend(copied.map(|file| FileDraft::new(format!("_system/config/custom/{scheme}/{}", file.name), file.text)));
    drafts.extend(
        SCHEMAS
            .iter()
            .filter_map(|name| Some(FileDraft::new(format!("schemas/{name}.schema.json"), schemas::text(name)?))),
    );
    drafts.push(FileDraft::new(".vscode/settings.json", include_str!("editors/settings.json")));
    drafts.push(FileDraft::new(".vscode/extensions.json", include_str!("editors/extensions.json")));
    drafts.push(FileDraft::new(".gitignore", texts.gitignore));
    drafts
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_engine::config::config::parse;

    #[test]
    fn no_placeholder_is_left_in_a_new_project() {
        for language in [Language::English, Language::Chinese] {
            for draft in project(language, "heart", "own") {
                assert!(!draft.text.contains("@SCHEME@") && !draft.text.contains("@NAME@"), "{}", draft.path);
            }
        }
    }

    #[test]
    fn both_languages_have_the_same_files_in_their_own_language() {
        let [english, chinese] =
            [Language::English, Language::Chinese].map(|language| project(language, "heart", "own"));
        let paths = |drafts: &[FileDraft]| drafts.iter().map(|draft| draft.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&english), paths(&chinese));
        let han = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        for (english, chinese) in english.iter().zip(&chinese) {
            let same = english.path.starts_with("schemas/") || english.path.starts_with(".vscode/");
            assert!(same || han(&chinese.text), "{}", chinese.path);
            assert!(same || !han(&english.text), "{}", english.path);
        }
    }

    #[test]
    fn the_example_models_of_the_configuration_are_valid() {
        for language in [Language::English, Language::Chinese] {
            let config = texts(language).config.replace("@SCHEME@", "own");
            assert_eq!(parse("bcc-script.toml", &config).unwrap().models.len(), 1);
            let examples = config.split("# [models.").skip(1);
            let mut count = 0;
            for example in examples {
                let lines = example.lines().take_while(|line| !line.is_empty());
                let lines: Vec<&str> = lines.map(|line| line.trim_start_matches("# ")).collect();
                let example = format!("[models.{}\n", lines.join("\n"));
                let parsed = parse("bcc-script.toml", &example).unwrap_or_else(|error| panic!("{example}\n{error}"));
                assert_eq!(parsed.models.len(), 1, "{example}");
                count += 1;
            }
            assert_eq!(count, 3);
        }
    }
}
