//! The prompt templates of a session: found by name and version, each compiled once, when it is first needed
//! (docs/templates.md).

use crate::message::ToMessage;
use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;
use crate::template::error::of_message;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use minijinja::{Environment, ErrorKind, UndefinedBehavior};

use crate::source::near::did_you_mean;
use crate::source::near::near_miss;
use crate::template::environment::{environment, write_marked};
use crate::template::error::{MistakeKind, TemplateError};
use crate::template::layers::{MAX_FILE_BYTES, MAX_FILES, TemplateFile, TemplateLayer, is_template_name, order, shown};
use crate::template::loaded::{DEFAULT_PREFIX, LoadedTemplate, is_outside, outside};
use crate::template::mentions::{TemplateLibrary, mentioned};
use crate::template::missing::Marks;
use crate::template::roles::{MIN_MARK_BYTES, Sentinels};
use crate::template::template::Template;
use crate::template::uses::{Pull, Target, Uses};

/// Marks, for the loader, a name that no pinned file has. No file can have it in its name.
const UNKNOWN: char = '\0';

/// The templates that one session is pinned to.
#[derive(Debug)]
pub struct Templates {
    pub(crate) environment: Environment<'static>,
    pub(crate) sentinels: Sentinels,
    pub(crate) loaded: Arc<[LoadedTemplate]>,
    /// As templates name each other: `ai_ask_v1.md`, `default:ai_ask_v1.md`.
    by_name: HashMap<String, usize>,
    places: Vec<String>,
    /// Where what a rendering lacks is noted, when it is to be looked at and not to be sent.
    pub(crate) marks: Option<Arc<Marks>>,
}

impl Templates {
    /// Takes pinned files. `mark` becomes part of the role markers: at least [`MIN_MARK_BYTES`] ASCII letters and
    /// digits that nobody can guess, new for each process.
    /// Errors: A mark that is none, a file with an impossible place or name, more or longer files than
    /// [`collect`](crate::template::layers::collect) gives. A mistake *inside* a file is an error of [`get`](Self::get)
    /// for the templates that need it (a broken README.md beside them breaks nothing); [`problems`](Self::problems)
    /// lists all.
    pub fn new(files: &[TemplateFile], mark: &str) -> Result<Self, TemplateError> {
        let sentinels = Sentinels::new(mark).ok_or_else(|| {
            TemplateError::new(msg!("the mark of role markers must have at least {MIN_MARK_BYTES} letters and digits"))
        })?;
        let mut by_name = HashMap::new();
        let mut loaded = Vec::with_capacity(files.len());
        for (number, (layer, file)) in in_order(files)?.into_iter().enumerate() {
            by_name.entry(file.name.clone()).or_insert(number);
            if !layer.is_of_scheme() {
                by_name.entry(format!("{DEFAULT_PREFIX}{}", file.name)).or_insert(number);
            }
            loaded.push(LoadedTemplate::of(file));
        }
        let scheme = files
            .iter()
            .find_map(|file| file.place.strip_prefix("custom/").or_else(|| file.place.strip_prefix("builtin/custom/")));
        let mut environment = environment(UndefinedBehavior::Strict);
        let loaded: Arc<[LoadedTemplate]> = loaded.into();
        connect(&mut environment, &loaded, &by_name, &sentinels);
        Ok(Self { environment, sentinels, loaded, by_name, places: order(scheme), marks: None })
    }

    /// The same templates to be looked at instead of sent: a name that is unknown fails nothing, is marked at its place and
    /// noted in `marks`, where the variables that have no value are noted too. A check against them asks for no name either.
    #[must_use]
    pub fn marking(mut self, marks: Arc<Marks>) -> Self {
        self.marks = Some(marks);
        self.environment.set_formatter(write_marked);
        self
    }

    /// The names that rendering a template may look up, with whether each must be known.
    pub(crate) fn mentioned<'t>(&'t self, loaded: &'t LoadedTemplate) -> &'t BTreeMap<String, bool> {
        loaded.mentioned.get_or_init(|| {
            let number = self.loaded.iter().position(|other| other.key == loaded.key);
            number.map(|number| mentioned(self, number)).unwrap_or_default()
        })
    }

    /// What is wrong with a template or one that it names: the first of it.
    fn problem_of(&self, number: usize) -> Option<&TemplateError> {
        let loaded = self.loaded.get(number)?;
        loaded.problem.get_or_init(|| self.problem(number, &mut Vec::new())).as_ref()
    }

    fn problem(&self, number: usize, path: &mut Vec<usize>) -> Option<TemplateError> {
        let loaded = self.loaded.get(number)?;
        if let Some(mistake) = loaded.mistakes().first() {
            return Some(mistake.clone());
        }
        if path.contains(&number) {
            return None;
        }
        path.push(number);
        let found = loaded.uses().targets.iter().find_map(|target| {
            self.fault_of(loaded, target, path).or_else(|| {
                let next = self.by_name.get(target.name.as_deref()?)?;
                self.problem(*next, path)
            })
        });
        path.pop();
        found
    }

    /// What is wrong with naming `target`; `path` are the templates on the way to it, its own last.
    fn fault_of(&self, loaded: &LoadedTemplate, target: &Target, path: &[usize]) -> Option<TemplateError> {
        let name = target.name.as_deref().filter(|name| !is_outside(name))?;
        let range = || loaded.range(&target.named);
        match self.by_name.get(name) {
            Some(next) if target.pull == Pull::Extends && path.contains(next) => {
                let message = msg!("`{name}` extends itself");
                let help = match name.strip_prefix(DEFAULT_PREFIX) {
                    None => msg!("to extend the default template, write `{DEFAULT_PREFIX}{name}`"),
                    Some(_) => msg!("this is the default template: only a template of a scheme can extend it"),
                };
                Some(loaded.mistake(MistakeKind::Itself, range(), message, Some(help)))
            }
            None if target.pull != Pull::IncludeIfThere => {
                let (prefix, file) =
                    name.strip_prefix(DEFAULT_PREFIX).map_or(("", name), |file| (DEFAULT_PREFIX, file));
                let mut known: Vec<&str> = self.by_name.keys().filter_map(|name| name.strip_prefix(prefix)).collect();
                known.sort_unstable();
                let near = near_miss(file, known).map(|near| format!("{prefix}{near}"));
                let help = near.as_ref().map_or_else(|| self.tried(file), |near| msg!("did you mean `{near}`?"));
                let message = msg!("there is no template `{name}`");
                let told = loaded.mistake(MistakeKind::Missing, range(), message, Some(help));
                Some(told.with_instead(near.as_deref()))
            }
            _ => None,
        }
    }

    /// Every mistake that stands in the file with this number, not only the first one, without those of what it names.
    pub fn mistakes(&self, number: usize) -> Vec<TemplateError> {
        let Some(loaded) = self.loaded.get(number) else { return Vec::new() };
        let mut found = loaded.mistakes().to_vec();
        for target in &loaded.uses().targets {
            match self.fault_of(loaded, target, &[number]) {
                Some(fault) => found.push(fault),
                None => found.extend(self.circle(number, target)),
            }
        }
        found
    }

    /// Whether what `target` names pulls the template in again, whatever the values are.
    fn circle(&self, number: usize, target: &Target) -> Option<TemplateError> {
        let loaded = self.loaded.get(number)?;
        let named = |target: &Target| {
            let name = target.name.as_deref().filter(|_| target.always)?;
            self.by_name.get(name).copied()
        };
        let mut seen = BTreeSet::new();
        let mut next: Vec<usize> = named(target).into_iter().collect();
        while let Some(one) = next.pop() {
            if one == number {
                let name = target.name.as_deref().unwrap_or_default();
                let message = if named(target) == Some(number) {
                    msg!("`{name}` is this template itself, so rendering would never end")
                } else {
                    msg!("`{name}` loads this template again, so rendering would never end")
                };
                let help = Message::word("remove one of the two, or put it in an `{% if … %}` that ends the recursion");
                return Some(loaded.mistake(MistakeKind::Itself, loaded.range(&target.named), message, Some(help)));
            }
            if seen.insert(one) {
                next.extend(
                    self.loaded.get(one).into_iter().flat_map(|loaded| &loaded.uses().targets).filter_map(named),
                );
            }
        }
        None
    }

    /// The files, in look-up order; a template's number is its index here.
    pub fn files(&self) -> &[LoadedTemplate] {
        &self.loaded
    }

    /// The number of the template that `marks` say was rendered last. Two layers may have files of one name.
    pub fn rendered_last(&self, marks: &Marks) -> Option<usize> {
        let key = marks.template()?;
        self.loaded.iter().position(|loaded| loaded.key == key)
    }

    /// The number of the file that a template or a kind means by this name.
    pub fn number(&self, file: &str) -> Option<usize> {
        self.by_name.get(file).copied()
    }

    fn tried(&self, file: &str) -> Message {
        let tried = self.places.iter().map(|place| Message::text(shown(place, file)));
        msg!("tried {}", Message::list(Joint::Item, tried))
    }

    /// The template `name` (`ai_ask`) in a version.
    /// Errors: There is none: says where it was looked for, and which versions there are. Or it, or one that it names, has a
    /// mistake.
    pub fn get(&self, name: &str, version: u32) -> Result<Template<'_>, TemplateError> {
        let file = format!("{name}_v{version}.md");
        let Some(number) = self.by_name.get(&file) else {
            let versions: BTreeSet<u32> =
                self.loaded.iter().filter_map(|loaded| version_of(loaded.name(), name)).collect();
            let mut help = self.tried(&file);
            if !versions.is_empty() {
                let versions: Vec<String> = versions.iter().map(u32::to_string).collect();
                help = msg!("{help}; available versions: {}", versions.join(", "));
            } else if let Some(near) = did_you_mean(&file, self.loaded.iter().map(|loaded| loaded.name())) {
                help = msg!("{near} ({help})");
            }
            return Err(TemplateError::new(msg!("there is no template `{name}` in version {version}")).with_help(help));
        };
        self.at(*number)
    }

    /// The template with this number, whatever it is called: a part of others too.
    /// Errors: It, or one that it names, has a mistake; there is no such number.
    pub fn at(&self, number: usize) -> Result<Template<'_>, TemplateError> {
        match (self.problem_of(number), self.loaded.get(number)) {
            (Some(problem), _) => Err(problem.clone()),
            (None, Some(loaded)) => Ok(Template::new(self, loaded)),
            (None, None) => Err(TemplateError::new("there is no such template")),
        }
    }

    /// What is wrong with the files, each mistake once, whether or not a template needs them.
    pub fn problems(&self) -> Vec<&TemplateError> {
        let mut problems: Vec<&TemplateError> = Vec::new();
        for problem in (0..self.loaded.len()).filter_map(|number| self.problem_of(number)) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}

impl TemplateLibrary for Templates {
    fn uses(&self, template: usize) -> &Uses {
        static NONE: Uses = Uses {
            names: Vec::new(),
            places: Vec::new(),
            targets: Vec::new(),
            blocks: Vec::new(),
            refused: Vec::new(),
        };
        self.loaded.get(template).map_or(&NONE, LoadedTemplate::uses)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}

/// Lets templates find each other: the environment asks for each once, by its name, and compiles it.
fn connect(
    environment: &mut Environment<'static>,
    loaded: &Arc<[LoadedTemplate]>,
    by_name: &HashMap<String, usize>,
    sentinels: &Sentinels,
) {
    let keys: HashMap<String, String> =
        by_name.iter().filter_map(|(name, number)| Some((name.clone(), loaded.get(*number)?.key.clone()))).collect();
    environment.set_path_join_callback(move |name, _parent| match keys.get(name) {
        Some(key) => Cow::Owned(key.clone()),
        None => Cow::Owned(format!("{UNKNOWN}{name}")),
    });
    let (files, sentinels) = (Arc::clone(loaded), sentinels.clone());
    environment.set_loader(move |key| match key.strip_prefix(UNKNOWN) {
        Some(name) if is_outside(name) => Err(of_message(ErrorKind::InvalidOperation, outside(name))),
        Some(name) => Err(of_message(ErrorKind::TemplateNotFound, msg!("there is no template `{name}`"))),
        None => match files.iter().find(|file| file.key == key) {
            // Only names that are computed lead to a file with mistakes: the others were looked at before.
            Some(file) => match file.mistakes().first() {
                Some(mistake) => Err(of_message(ErrorKind::InvalidOperation, mistake.to_message())),
                None => Ok(Some(sentinels.place(file.body()))),
            },
            None => Ok(None),
        },
    });
}

/// The files by layer, in look-up order.
fn in_order(files: &[TemplateFile]) -> Result<Vec<(TemplateLayer, &TemplateFile)>, TemplateError> {
    if files.len() > MAX_FILES {
        return Err(TemplateError::new(msg!("a session can have at most {MAX_FILES} templates")));
    }
    let mut ordered = Vec::with_capacity(files.len());
    for file in files {
        let layer = TemplateLayer::of(&file.place)
            .filter(|_| is_template_name(&file.name) && file.text.len() <= MAX_FILE_BYTES);
        let layer = layer.ok_or_else(|| {
            let name = format!("{}/{}", file.place, file.name);
            TemplateError::new(msg!("`{}` cannot be used as a template", name.escape_debug()))
        })?;
        ordered.push((layer, file));
    }
    ordered.sort_by_key(|(layer, _)| *layer);
    Ok(ordered)
}

fn version_of(file: &str, name: &str) -> Option<u32> {
    file.strip_prefix(name)?.strip_prefix("_v")?.strip_suffix(".md")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "00112233445566778899aabbccddeeff";

    fn files(files: &[(&str, &str)]) -> Vec<TemplateFile> {
        let file = |(path, text): &(&str, &str)| {
            let (place, name) = path.rsplit_once('/').unwrap();
            TemplateFile { place: place.into(), name: name.into(), text: (*text).into() }
        };
        files.iter().map(file).collect()
    }

    fn templates(list: &[(&str, &str)]) -> Templates {
        Templates::new(&files(list), MARK).unwrap()
    }

    #[test]
    fn the_layers_are_looked_through_in_order_whatever_the_order_of_the_files() {
        let all = [
            ("builtin/default/a_v1.md", ""),
            ("default/a_v1.md", ""),
            ("builtin/custom/s/a_v1.md", ""),
            ("custom/s/a_v1.md", ""),
        ];
        let shown = [
            "built-in _system/config/default/",
            "_system/config/default/",
            "built-in _system/config/custom/s/",
            "_system/config/custom/s/",
        ];
        for length in 1..=all.len() {
            let templates = templates(&all[..length]);
            assert_eq!(templates.get("a", 1).unwrap().file(), format!("{}a_v1.md", shown[length - 1]));
        }
    }

    #[test]
    fn a_template_that_is_nowhere_says_what_was_tried() {
        let templates =
            templates(&[("custom/english/a_v1.md", ""), ("default/a_v3.md", ""), ("default/other_v1.md", "")]);
        let error = templates.get("a", 2).unwrap_err();
        assert_eq!(error.message, "there is no template `a` in version 2");
        insta::assert_snapshot!(error.help.unwrap(), @"tried _system/config/custom/english/a_v2.md, built-in _system/config/custom/english/a_v2.md, _system/config/default/a_v2.md, built-in _system/config/default/a_v2.md; available versions: 1, 3");
        assert!(templates.get("othr", 1).unwrap_err().help.unwrap().to_string().contains("`other_v1.md`"));
    }

    #[test]
    fn a_broken_file_breaks_only_the_templates_that_need_it() {
        let templates = templates(&[
            ("default/README.md", "write {% like this"),
            ("default/good_v1.md", "{{ x }}"),
            ("default/bad_v1.md", "---\nmodel: m\n---\n{{ x | uper }}"),
            ("default/user_v1.md", "{% include 'README.md' %}"),
            ("default/lost_v1.md", "a\n {% include 'REDME.md' %}"),
            ("default/loop_v1.md", "{% extends 'loop_v1.md' %}"),
            ("default/front_v1.md", "---\nmodle: m\n---\n"),
        ]);
        assert!(templates.get("good", 1).is_ok());
        let error = |name: &str| templates.get(name, 1).unwrap_err();
        assert_eq!(error("bad").to_string(), "_system/config/default/bad_v1.md:4:8: there is no filter `uper`");
        assert_eq!(error("user").file.as_deref(), Some("_system/config/default/README.md"));
        assert_eq!(
            (error("lost").line, error("lost").help.as_ref().map(ToString::to_string).as_deref()),
            (Some(2), Some("did you mean `README.md`?"))
        );
        assert_eq!(
            error("loop").help.as_ref().map(ToString::to_string).as_deref(),
            Some("to extend the default template, write `default:loop_v1.md`")
        );
        assert_eq!(
            (error("front").line, error("front").help.as_ref().map(ToString::to_string).as_deref()),
            (Some(2), Some("did you mean `model`?"))
        );
        assert_eq!(templates.problems().len(), 5);
    }

    #[test]
    fn what_is_missing_below_a_role_marker_is_told_at_its_own_line() {
        let file = "<!-- system -->\n你好\n<!-- user -->\n{% include 'lost.md' %}";
        let templates = templates(&[("default/a_v1.md", file)]);
        let error = templates.get("a", 1).unwrap_err();
        assert_eq!((error.line, error.column), (Some(4), Some(12)));
        assert_eq!(&file[error.mistake.unwrap().range], "'lost.md'");
    }

    #[test]
    fn names_stand_where_the_whole_file_has_them() {
        let file = "\u{feff}---\nmodel: m\n---\n<!-- system -->\n你好 {{ 用户名 }}{{ x | default(1) }}";
        let templates = templates(&[("default/a_v1.md", file)]);
        let template = templates.get("a", 1).unwrap();
        let names: Vec<_> = template.names().iter().map(|used| (&file[used.range.clone()], used.optional)).collect();
        assert_eq!(names, [("用户名", false), ("x", true)]);
        assert_eq!(template.front().model.as_deref(), Some("m"));
    }

    #[test]
    fn mentions_follow_what_is_pulled_in_and_leave_out_what_is_replaced() {
        let base = "{{ root }}{% block a %}{{ in_a }}{% block inner %}{{ in_inner }}{% endblock %}{% endblock %}{% block b %}{{ in_b }}{% endblock %}{% include 'part.md' %}{% import 'macros.md' as m %}";
        let child = "{% extends 'default:t_v1.md' %}{{ lost }}{% set kept = used %}{% block a %}{{ own_a }}{% endblock %}{% block b %}{{ super() }}{% endblock %}";
        let templates = templates(&[
            ("custom/s/t_v1.md", child),
            ("default/t_v1.md", base),
            ("default/part.md", "{{ in_part }}{% include 'part.md' %}"),
            ("default/macros.md", "{{ lost_in_import }}{% macro m() %}{{ in_macro }}{% endmacro %}"),
        ]);
        let template = templates.get("t", 1).unwrap();
        let mentioned: Vec<&str> = template.mentioned().map(|(name, _)| name).collect();
        assert_eq!(mentioned, ["in_b", "in_macro", "in_part", "lost_in_import", "own_a", "root", "used"]);
        assert!(template.mentions("root") && !template.mentions("in_inner"));
    }

    #[test]
    fn pinned_files_that_cannot_be_templates_are_refused() {
        let long = "x".repeat(MAX_FILE_BYTES + 1);
        for (path, text) in [
            ("elsewhere/a.md", ""),
            ("custom/../a.md", ""),
            ("default/a.txt", ""),
            ("default/.md", ""),
            ("default/a.md", long.as_str()),
        ] {
            assert!(Templates::new(&files(&[(path, text)]), MARK).is_err(), "{path}");
        }
        assert!(Templates::new(&[], "guess").unwrap_err().message.to_string().contains("mark"));
    }

    #[test]
    fn the_templates_of_the_binary_all_compile() {
        struct Nothing;
        impl crate::template::layers::TemplateSource for Nothing {
            fn read(&self, _: crate::template::layers::TemplateFolder<'_>, _: &str) -> Result<Option<String>, Message> {
                Ok(None)
            }
            fn list(&self, _: crate::template::layers::TemplateFolder<'_>) -> Result<Vec<String>, Message> {
                Ok(Vec::new())
            }
        }
        for scheme in [None, Some("english")] {
            let files = crate::template::layers::collect(&Nothing, scheme).unwrap();
            let templates = Templates::new(&files, MARK).unwrap();
            assert_eq!(templates.problems(), Vec::<&TemplateError>::new());
            for name in ["ai_ask", "ai_say", "ai_think", "ai_ask_monitor", "ai_say_monitor"] {
                assert!(templates.get(name, 1).is_ok(), "{name}");
            }
        }
    }
}
