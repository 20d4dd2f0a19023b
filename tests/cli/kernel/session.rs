//! Tests of code in a session through the program: it needs the project's permission and the person's trust, and gets only
//! the environment variables that are listed.

use std::path::Path;

use crate::process::{Home, finished};
use crate::pseudo_terminal::Terminal;
use crate::test_kernel::{kernel_python, kernel_variables};

const ALLOWED: &str = "[project]\nallow = [\"exec\"]\n\n[models.own]\nprovider = \"openai\"\nmodel = \"m\"\napi_key_env = \"MY_PRIVATE_WORD\"\n";

const SCRIPT: &str = r#"
session:
  session_id: code
  phases:
    - phase_id: only
      topics:
        - topic_id: only
          actions:
            - action_type: add
              action_id: write
              config:
                shot_type: action
                content: |
                  import os
                  open('seen', 'w').write(repr(sorted(os.environ)))
            - action_type: exec
              action_id: do
              config: { codecell_id: lastAddedCellId }
"#;

fn run(home: &Home, options: &[&str], python: Option<&Path>) -> (Option<i32>, String) {
    let mut command = home.command(["run", "script.yaml", "--session", "s"].iter().chain(options));
    command.env("MY_PRIVATE_WORD", "geheim").env("OTHER_API_KEY", "geheim").env("PLAIN", "seen");
    if let Some(python) = python {
        command.envs(kernel_variables(python));
    }
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_script_with_code_is_rejected_before_its_session_starts_without_permission() {
    let home = Home::new();
    home.file("script.yaml", SCRIPT);
    for (config, part) in [
        ("", "add `allow = [\"exec\"]` to `[project]`"),
        ("[project]\nallow = [\"command\"]\n", "add `allow = [\"exec\"]` to `[project]`"),
        (ALLOWED, "run `bcc-script trust`"),
    ] {
        home.file("bcc-script.toml", config);
        let (code, text) = run(&home, &[], None);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("script.yaml:16: the action `do` needs `exec`") && text.contains(part), "{text}");
    }
    assert!(!home.path().join("seen").exists());
    let listed = home.finish(["sessions", "list"], "");
    assert!(!listed.out.contains("code"), "{}", listed.out);
}

#[test]
fn an_unknown_permission_is_reported() {
    let home = Home::new();
    home.file("script.yaml", SCRIPT);
    home.file("bcc-script.toml", "[project]\nallow = [\"exce\"]\n");
    let (code, text) = run(&home, &[], None);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("`exce` in `allow` is not a known permission") && text.contains("did you mean `exec`?"),
        "{text}"
    );
}

#[test]
fn code_of_a_trusted_project_gets_only_the_usual_variables_and_those_that_the_configuration_names() {
    let Some(python) = kernel_python() else { return };
    for (more, named) in [("", false), ("[kernel]\nenv = [\"PLAIN\"]\n", true)] {
        let home = Home::new();
        home.file("script.yaml", SCRIPT);
        home.file("bcc-script.toml", &format!("{ALLOWED}{more}"));
        let (code, text) = run(&home, &["--trust", "--model", "offline"], Some(&python));
        assert_eq!(code, Some(0), "{text}");
        let seen = std::fs::read_to_string(home.path().join("seen")).unwrap();
        assert!(seen.contains("'VIRTUAL_ENV'") && seen.contains("'TZ'"), "{seen}");
        assert_eq!(seen.contains("'PLAIN'"), named, "{seen}");
        assert!(!seen.contains("API_KEY") && !seen.contains("PRIVATE"), "{seen}");
    }
}

#[test]
fn an_error_that_names_a_withheld_variable_is_explained_without_its_value() {
    let Some(python) = kernel_python() else { return };
    for (more, code, is_told) in [
        ("", "os.environ['PLAIN']", true),
        ("", "raise RuntimeError('no credentials: set OTHER_API_KEY, or log in')", true),
        ("", "os.environ['SOMETHING_ELSE']", false),
        ("[kernel]\nenv = [\"PLAIN\"]\n", "raise RuntimeError('PLAIN')", false),
    ] {
        let home = Home::new();
        home.file("script.yaml", &SCRIPT.replace("open('seen', 'w').write(repr(sorted(os.environ)))", code));
        home.file("bcc-script.toml", &format!("{ALLOWED}{more}"));
        let (_, text) = run(&home, &["--trust", "--model", "offline"], Some(&python));
        let name = if code.contains("OTHER") { "OTHER_API_KEY" } else { "PLAIN" };
        let told =
            format!("the error names the environment variable `{name}`, which is set here and not passed to code");
        assert_eq!(text.contains(&told), is_told, "{code}: {text}");
        assert_eq!(text.contains(&format!("`env = [\"{name}\"]` in `[kernel]`")), is_told, "{code}: {text}");
        assert!(!text.contains("geheim"), "{text}");
    }
}

#[test]
fn code_is_not_added_to_the_history_of_ipython() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("script.yaml", &SCRIPT.replace("import os", "import os  # a word that nobody else should read"));
    home.file("bcc-script.toml", ALLOWED);
    let (code, text) = run(&home, &["--trust", "--model", "offline"], Some(&python));
    assert_eq!(code, Some(0), "{text}");
    assert!(home.path().join(".ipython").is_dir(), "the kernel has a home");
    assert!(!home.path().join(".ipython/profile_default/history.sqlite").exists());
}

/// The script with a kernel of this name that is not installed.
fn with_missing_kernel(home: &Home, script: &str) {
    home.file("script.yaml", &script.replace("  phases:", "  kernel: { name: nowhere, timeout: 5s }\n  phases:"));
    home.file("bcc-script.toml", ALLOWED);
}

#[test]
fn a_missing_kernel_is_told_before_the_session_exists() {
    let home = Home::new();
    with_missing_kernel(&home, SCRIPT);
    let (code, text) = run(&home, &["--trust", "--model", "offline"], None);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("script.yaml:17: the action `do` runs code: there is no kernel `nowhere`"), "{text}");
    assert!(text.contains("pip install ipykernel"), "{text}");
    // A kernel whose program was removed, and a Python without ipykernel.
    home.put("jupyter/kernels/nowhere/kernel.json", r#"{"argv": ["/no/such/python", "-m", "x"]}"#);
    let mut command = home.command(["run", "script.yaml", "--session", "s", "--trust", "--model", "offline"]);
    let output = command.env("JUPYTER_PATH", home.path().join("jupyter")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = home.finish(["sessions", "list"], "");
    assert!(!listed.out.contains("code"), "{}", listed.out);
}

#[test]
fn a_kernel_that_is_missing_when_a_session_is_resumed_stops_it_until_it_is_installed() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let asks = "actions:\n            - { action_type: ai_ask, action_id: ask, config: { content: 'Ready?' } }";
    with_missing_kernel(&home, &SCRIPT.replace("actions:", asks));
    let spec = format!(
        r#"{{"argv": [{:?}, "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]}}"#,
        python.display().to_string()
    );
    let install = || home.put("jupyter/kernels/nowhere/kernel.json", &spec);
    let resume = |input: &str| {
        let mut command = home.command(["sessions", "resume", "s", "--trust", "--json"]);
        command.envs(kernel_variables(&python)).env("JUPYTER_PATH", home.path().join("jupyter"));
        finished(command, input)
    };
    install();
    let mut command = home.command(["run", "script.yaml", "--session", "s", "--trust", "--model", "offline"]);
    command.envs(kernel_variables(&python)).env("JUPYTER_PATH", home.path().join("jupyter"));
    let begun = finished(command, "");
    assert_eq!(begun.code, Some(3), "{}", begun.err);
    std::fs::remove_dir_all(home.path().join("jupyter")).unwrap();
    let stopped = resume("yes\n");
    assert_eq!(stopped.code, Some(3), "{}", stopped.err);
    let again = resume("");
    assert_eq!(again.code, Some(3), "{}", again.err);
    // The code did not begin, so nobody is asked about it.
    let kinds: Vec<String> = again.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    assert!(kinds.contains(&"session_stopped".to_owned()) && !kinds.contains(&"waiting".to_owned()), "{kinds:?}");
    install();
    let done = resume("");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(home.path().join("seen").exists());
}

#[test]
fn a_route_for_error_applies_when_the_kernel_is_missing() {
    let home = Home::new();
    let routed = "config: { codecell_id: lastAddedCellId }\n              on_exit: { error: next }";
    with_missing_kernel(&home, &SCRIPT.replace("config: { codecell_id: lastAddedCellId }", routed));
    let (code, text) = run(&home, &["--trust", "--model", "offline"], None);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_kernel_that_died_is_told_in_a_pipe_and_in_a_terminal() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    let script = SCRIPT.replace("open('seen', 'w').write(repr(sorted(os.environ)))", "os._exit(3)");
    home.file("script.yaml", &script);
    let (code, text) = run(&home, &["--trust", "--model", "offline"], Some(&python));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("warning: the kernel died while running the code of a cell; its memory is lost"), "{text}");
    assert!(text.contains("help: it restarts when the next code is run"), "{text}");
    let arguments = ["run", "script.yaml", "--session", "t", "--trust", "--model", "offline"];
    let mut variables = vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())];
    variables.extend(kernel_variables(&python));
    let mut terminal = Terminal::start_with(&home, &arguments, &variables);
    terminal.until("! the kernel died while running the code of a cell");
    assert_eq!(terminal.end(), Some(0));
}
