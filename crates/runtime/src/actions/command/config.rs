//! Reads the config of a `command`.

use bcc_lang::message::msg;
use std::sync::Arc;

use crate::actions::calling::outputs;
use crate::actions::command::result::OUTPUTS;
use crate::actions::file_path::file_path;
use crate::effects::commands::process_result;
use crate::effects::permissions::of_program;
use crate::effects::process::ProcessResult;
use crate::program::kind::{ActionProperties, KindChecker};
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::{Fields, TextField, is_null, shortened};
use bcc_lang::script::project_path::PathUse;
use bcc_lang::script::test::effects::written_result;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_lang::template::text::Text;

/// The program that runs shell commands.
const SHELL: &str = "/bin/sh";

/// Environment variables that decide which program or library is loaded: their values would evade `allow`.
const LOADER_VARIABLES: [&str; 2] = ["LD_", "DYLD_"];

pub(crate) enum CommandLine {
    /// A program, as the author wrote it, and its arguments.
    Program(String, Vec<Text>),
    /// A shell command, without variables.
    Shell(String),
    /// Nothing runs: `simulate` is the result.
    Simulated,
}

impl CommandLine {
    /// The program that runs.
    pub(crate) fn program(&self) -> &str {
        match self {
            Self::Program(program, _) => program,
            Self::Shell(_) => SHELL,
            Self::Simulated => "",
        }
    }
}

pub(crate) struct CommandAction {
    pub line: CommandLine,
    /// `cwd`.
    pub folder: Option<Text>,
    pub environment: Vec<(String, Text)>,
    pub input: Option<Text>,
    pub ok_codes: Vec<u8>,
    pub requires: Option<Expr>,
    /// Our variables, each with the name of what it receives.
    pub outputs: Vec<(String, String)>,
    pub simulated: Option<ProcessResult>,
}

impl CommandAction {
    /// Reads the config, and describes the action. All problems are reported.
    pub(crate) fn read(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Self> {
        let before = fields.findings().author_errors();
        let is_shell = fields.boolean("shell") == Some(true);
        let is_simulated = !fields.has("command") && fields.has("simulate");
        let line = match is_simulated {
            true => Some(CommandLine::Simulated),
            false if is_shell => shell_line(fields),
            false => program_line(fields, checker),
        };
        let folder = fields.text("cwd").and_then(|words| file_path(&words, ("cwd", PathUse::Named), fields, checker));
        let environment = environment(fields, checker);
        let input = fields.text("input").and_then(|words| checker.code(&words));
        let ok_codes = ok_codes(fields);
        let requires = fields.text("requires").and_then(|words| checker.expression(&words));
        let outputs = named_outputs(fields, checker);
        let simulated = fields.take("simulate").and_then(|node| written_result(node, "`simulate`", fields));
        checker.describe(ActionProperties {
            max_rounds: 1,
            outputs: outputs.len(),
            needs: line.iter().filter(|_| !is_simulated).map(|line| of_program(line.program())).collect(),
            ..ActionProperties::default()
        });
        if fields.findings().author_errors() > before {
            return None;
        }
        let simulated = simulated.as_ref().map(process_result);
        Some(Self { line: line?, folder, environment, input, ok_codes, requires, outputs, simulated })
    }
}

/// Reads a list of the program and its arguments.
fn program_line(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<CommandLine> {
    let node = fields.required("command")?;
    let NodeKind::Sequence(items) = &node.kind else {
        report_text(node, fields);
        return None;
    };
    let Some((first, rest)) = items.split_first() else {
        fields.error(
            "empty-list",
            "`command` is empty",
            node.span,
            "write the program first, as in `command: [git, push]`",
        );
        return None;
    };
    let program = word(first, fields).and_then(|words| literal_program(&words, fields, checker));
    let arguments: Vec<Option<Text>> =
        rest.iter().map(|item| word(item, fields).and_then(|words| checker.code(&words))).collect();
    Some(CommandLine::Program(program?, arguments.into_iter().collect::<Option<_>>()?))
}

/// One item of a command.
fn word(item: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<TextField> {
    if let Some(scalar) = item.as_scalar().filter(|_| !is_null(item)) {
        return Some(TextField { text: scalar.text.clone(), node: Arc::clone(item) });
    }
    let message = msg!("an item of `command` must be text, but this is {}", item.describe());
    fields.error("wrong-type", message, item.span, "write each argument as one text; put quotes around `{{ name }}`");
    None
}

/// The program, which a variable must not choose: `allow` names it, and the author's trust covers it.
fn literal_program(words: &TextField, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<String> {
    let text = checker.code(words)?;
    if !text.is_plain() {
        let message = "the program of a `command` must not contain variables";
        let help =
            "write its name or path; to choose between programs, use a `condition` with one `command` in each case";
        fields.error("wrong-type", message, words.node.span, help);
        return None;
    }
    if words.text.trim().is_empty() {
        let help = "write the name or the path of a program first, as in `command: [git, push]`";
        fields.error("missing-key", "`command` names no program", words.node.span, help);
        return None;
    }
    Some(words.text.clone())
}

/// Reports a command that is not written as a list.
fn report_text(node: &YamlNode, fields: &Fields<'_>) {
    let message = msg!("`command` must be a list of a program and its arguments, but this is {}", node.describe());
    let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), node.span);
    let list = node.as_scalar().and_then(|scalar| as_list(&scalar.text));
    let help = match &list {
        Some(list) => msg!("write `command: {list}`"),
        None => msg!(
            "write `command: [\"program\", \"argument\"]`; for pipes, redirections and shell variables, add `shell: true`"
        ),
    };
    fields.findings().report(diagnostic.with_help(help).with_replacement(list.as_deref()));
}

/// The words of a text as a list, if it needs no shell to find them. Each `{{ … }}` is a part of one word.
fn as_list(text: &str) -> Option<String> {
    let (mut words, mut word, mut rest) = (Vec::new(), String::new(), text);
    while let Some(character) = rest.chars().next() {
        if let Some(placeholder) = rest.starts_with("{{").then(|| rest.find("}}")).flatten() {
            let end = placeholder + 2;
            word.push_str(rest.get(..end)?);
            rest = rest.get(end..)?;
            continue;
        }
        match character {
            ' ' if word.is_empty() => {}
            ' ' => words.push(std::mem::take(&mut word)),
            c if c.is_alphanumeric() || "_./:=@%+,-".contains(c) => word.push(c),
            _ => return None,
        }
        rest = rest.get(character.len_utf8()..)?;
    }
    words.extend((!word.is_empty()).then_some(word));
    // JSON is YAML.
    (!words.is_empty())
        .then(|| format!("[{}]", words.iter().map(|word| format!("{:?}", word)).collect::<Vec<_>>().join(", ")))
}

/// Reads a shell command, in which a variable would become code.
fn shell_line(fields: &Fields<'_>) -> Option<CommandLine> {
    let words = match fields.required("command")? {
        node if matches!(node.kind, NodeKind::Sequence(_)) => {
            let message = "with `shell: true`, `command` must be one text, but this is a list";
            let help = "write the shell command as one text, or remove `shell: true`";
            fields.error("wrong-type", message, node.span, help);
            return None;
        }
        _ => fields.required_text("command")?,
    };
    if let Some(at) = placeholder(&words.text) {
        let name = words.text.get(at..).and_then(|from| from.split("}}").next()).unwrap_or_default();
        let message = msg!(
            "a variable in a shell command would become a part of its code: `{}`",
            shortened(&format!("{name}}}}}"))
        );
        let help = "pass it as an environment variable: `env: { NAME: \"{{ name }}\" }`, and write `\"$NAME\"` here";
        fields.error("shell-variable", message, words.node.span, help);
        return None;
    }
    if words.text.trim().is_empty() {
        let help = "write the shell command, as in `command: \"ls | wc -l\"`";
        fields.error("missing-key", "`command` names no program", words.node.span, help);
        return None;
    }
    // The text is no template: `{{.ID}}` and `${x}` belong to the command.
    Some(CommandLine::Shell(words.text))
}

/// The position of a placeholder in a shell command. `{{.ID}}`, as in the formats of other programs, is none.
fn placeholder(text: &str) -> Option<usize> {
    let is_placeholder = |at: &usize| {
        let inside = text.get(at + 2..).unwrap_or_default().trim_start_matches(['-', '+']).trim_start();
        inside.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '(' | '"' | '\'' | '['))
    };
    let tags = text.match_indices("{%").map(|(at, _)| at);
    text.match_indices("{{").map(|(at, _)| at).filter(is_placeholder).chain(tags).min()
}

fn environment(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Vec<(String, Text)> {
    let Some(node) = fields.take("env") else { return vec![] };
    let NodeKind::Mapping(entries) = &node.kind else {
        let message = msg!("`env` must be a mapping of names to texts, but this is {}", node.describe());
        fields.error("wrong-type", message, node.span, "write each variable on its own line, as `STAGE: test`");
        return vec![];
    };
    let mut environment = Vec::new();
    for entry in entries {
        let name = entry.key.value.as_str();
        let mut characters = name.chars();
        let is_name = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            let message = msg!("`{}` is not a valid environment variable name", shortened(name));
            fields.error("invalid-name", message, entry.key.span, "use letters of ASCII, digits and `_`");
            continue;
        }
        if name == "PATH" || LOADER_VARIABLES.iter().any(|prefix| name.starts_with(prefix)) {
            let message = msg!("`env` cannot set `{name}`, which decides what programs load");
            let help = "write the path of the program in `command`";
            fields.error("invalid-name", message, entry.key.span, help);
            continue;
        }
        let Some(scalar) = entry.value.as_scalar().filter(|_| !is_null(&entry.value)) else {
            let message = msg!("`{name}` of `env` must be text, but this is {}", entry.value.describe());
            fields.error("wrong-type", message, entry.value.span, "for an empty text, write `\"\"`");
            continue;
        };
        let words = TextField { text: scalar.text.clone(), node: Arc::clone(&entry.value) };
        environment.extend(checker.code(&words).map(|text| (name.to_owned(), text)));
    }
    environment
}

fn ok_codes(fields: &Fields<'_>) -> Vec<u8> {
    if fields.take("ok_codes").is_none() {
        return vec![0];
    }
    let items = fields.required_list("ok_codes").unwrap_or_default();
    let code = |item: &Arc<YamlNode>| {
        let code = item.to_json().as_u64().and_then(|code| u8::try_from(code).ok());
        if code.is_none() {
            let message = msg!("an item of `ok_codes` must be an exit code, but this is {}", item.describe());
            fields.error("out-of-range", message, item.span, "exit codes are whole numbers from 0 to 255");
        }
        code
    };
    items.iter().filter_map(code).collect()
}

/// Reads `output`.
fn named_outputs(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Vec<(String, String)> {
    let written = fields.take("output").map(|node| outputs(node, fields)).unwrap_or_default();
    let mut named = Vec::new();
    for (ours, theirs) in written {
        if !OUTPUTS.contains(&theirs.value.as_str()) {
            let message = msg!("a command has no output `{}`", shortened(&theirs.value));
            let help = match near_miss(&theirs.value, OUTPUTS) {
                Some(near) => msg!("did you mean `{near}`?"),
                None => msg!(
                    "write the name of your variable first, as in `output: {{ version: stdout }}`; the outputs are `exit_code`, `stdout` and `stderr`"
                ),
            };
            fields.error("unknown-output", message, theirs.span, help);
            continue;
        }
        checker.may_have_value(&ours, None);
        named.push((ours.value, theirs.value));
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_list_of_words_only_if_no_shell_is_needed() {
        let table = [
            ("git push origin", Some(r#"["git", "push", "origin"]"#)),
            ("./run.sh  {{ a }}-{{ b c }} x=1", Some(r#"["./run.sh", "{{ a }}-{{ b c }}", "x=1"]"#)),
            ("部署 {{ 环境 }}", Some(r#"["部署", "{{ 环境 }}"]"#)),
            ("ls | wc", None),
            ("echo $HOME", None),
            ("echo 'a b'", None),
            ("rm *.txt", None),
            ("a\nb", None),
            ("a {{ b", None),
            (" ", None),
        ];
        for (text, list) in table {
            assert_eq!(as_list(text).as_deref(), list, "{text}");
        }
    }

    #[test]
    fn placeholders_are_found_in_shell_commands_and_formats_of_other_programs_are_none() {
        for text in
            ["echo {{ name }}", "echo {{name}}", "{{- name }}", "{% if x %}", "a {{.ID}} {{ \"x\" }}", "{{ 名字 }}"]
        {
            assert!(placeholder(text).is_some(), "{text}");
        }
        for text in ["docker ps --format '{{.ID}}'", "echo ${name} {x}", "awk '{ print $1 }'", "{{ .Names }}"] {
            assert!(placeholder(text).is_none(), "{text}");
        }
    }
}
