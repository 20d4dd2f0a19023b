//! A kernel of another language: `bash_kernel`.

use std::path::Path;

use serde_json::{Value, json};

use crate::kernel::attached::script;
use crate::process::{Home, finished};
use crate::pseudo_terminal::{CTRL_C, Terminal};
use crate::test_kernel::{kernel_python, kernel_variables};

const RUN: [&str; 7] = ["run", "script.yaml", "--session", "s", "--trust", "--model", "offline"];

/// A project whose kernel `bash` is that of `bash_kernel`; `None` if the Python has none.
fn home(python: &Path, codes: &[&str]) -> Option<Home> {
    let found = std::process::Command::new(python).args(["-c", "import bash_kernel"]).output().unwrap();
    if !found.status.success() {
        let is_required = std::env::var_os("BCC_REQUIRE_KERNEL").is_some_and(|value| !value.is_empty() && value != "0");
        assert!(!is_required, "no bash_kernel: `.ci/kernel/run` installs one in target/jupyter");
        return None;
    }
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    home.file("script.yaml", &script(&json!("bash"), codes));
    let spec = json!({ "argv": [python, "-m", "bash_kernel", "-f", "{connection_file}"], "display_name": "Bash", "language": "bash" });
    home.put("jupyter/kernels/bash/kernel.json", spec.to_string());
    Some(home)
}

fn variables(home: &Home, python: &Path) -> Vec<(&'static str, String)> {
    let mut variables = kernel_variables(python).to_vec();
    variables.push(("JUPYTER_PATH", home.path().join("jupyter").display().to_string()));
    variables
}

#[test]
fn code_of_bash_runs_and_keeps_its_variables_and_the_notebook_says_bash() {
    let Some(python) = kernel_python() else { return };
    let Some(home) = home(&python, &["x=41", "echo \"x is $((x + 1))\"", "false"]) else { return };
    let mut command = home.command(RUN);
    command.envs(variables(&home, &python));
    let done = finished(command, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(home.export("s")["notebook"]["cells"][1]["outputs"][0]["text"], "x is 42\n");
    let exported = home.finish(["sessions", "export", "s", "--format", "ipynb"], "");
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    let notebook: Value = serde_json::from_str(&exported.out).unwrap();
    assert_eq!(notebook["metadata"]["language_info"]["name"], "bash", "{}", notebook["metadata"]);
    assert_eq!(notebook["metadata"]["kernelspec"]["name"], "bash", "{}", notebook["metadata"]);
}

#[test]
fn ctrl_c_interrupts_code_of_bash_and_its_variables_stay() {
    let Some(python) = kernel_python() else { return };
    let endless = "x=41\necho 'it has begun'\nwhile true; do sleep 0.05; done";
    let Some(home) = home(&python, &[endless, "echo \"x is $((x + 1))\""]) else { return };
    let mut variables = variables(&home, &python);
    variables.extend([("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())]);
    let mut terminal = Terminal::start_with(&home, &RUN, &variables);
    terminal.until("  it has begun");
    terminal.types(CTRL_C);
    terminal.until("the code is being interrupted");
    terminal.answers("skip");
    terminal.until("x is 42");
    assert_eq!(terminal.end(), Some(0));
}
