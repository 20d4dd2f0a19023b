//! The kernels that are installed on this machine (kernel specs of Jupyter), and the one that a name means.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::notebook::kernel::contract::KernelError;

/// The largest `kernel.json` that is read.
const MOST_SPEC_BYTES: u64 = 256 * 1024;

/// So many specs of one directory are looked at.
const MOST_SPECS: usize = 200;

/// The name that every script has by default, and that Python answers to also without a spec.
const PYTHON: &str = "python3";

/// How to get a kernel.
const HOW_TO_GET: &str = "`python3 -m pip install ipykernel` installs one for the first `python3` that is found";

/// How a kernel is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSpec {
    /// The name that scripts say.
    pub name: String,
    /// The name for people.
    pub display_name: String,
    /// The program and its arguments; `{connection_file}` stands for the file that it is told where to listen in.
    pub argv: Vec<String>,
    /// What is added to its environment.
    pub variables: BTreeMap<String, String>,
    /// Whether it is interrupted by a message; otherwise by SIGINT.
    pub by_message: bool,
}

#[derive(Deserialize)]
struct Written {
    argv: Vec<String>,
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    interrupt_mode: String,
}

/// Every kernel spec that is found, each name once: the first directory that has it counts.
pub fn installed(variables: &BTreeMap<String, String>) -> Vec<KernelSpec> {
    let system = ["/usr/local/share/jupyter", "/usr/share/jupyter"].map(PathBuf::from);
    installed_in(data_directories(variables).into_iter().chain(system))
}

fn installed_in(directories: impl IntoIterator<Item = PathBuf>) -> Vec<KernelSpec> {
    let mut found: BTreeMap<String, KernelSpec> = BTreeMap::new();
    for directory in directories {
        let Ok(entries) = std::fs::read_dir(directory.join("kernels")) else { continue };
        for entry in entries.flatten().take(MOST_SPECS) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Jupyter compares names without regard to case.
            let name = name.to_lowercase();
            if let (false, Some(spec)) = (found.contains_key(&name), read(&name, &entry.path(), &directory)) {
                found.insert(name, spec);
            }
        }
    }
    found.into_values().collect()
}

/// The spec that `name` means.
/// Errors: When there is none: the help says how to get one, and which there are.
pub fn find(name: &str, variables: &BTreeMap<String, String>) -> Result<KernelSpec, KernelError> {
    find_in(installed(variables), name, variables)
}

fn find_in(
    specs: Vec<KernelSpec>,
    name: &str,
    variables: &BTreeMap<String, String>,
) -> Result<KernelSpec, KernelError> {
    let wanted = name.to_lowercase();
    if let Some(spec) = specs.iter().find(|spec| spec.name == wanted) {
        return Ok(spec.clone());
    }
    if let (PYTHON, Some(python)) = (wanted.as_str(), python(variables)) {
        let program = python.to_string_lossy().into_owned();
        return Ok(KernelSpec {
            name: PYTHON.to_owned(),
            display_name: "Python 3".to_owned(),
            argv: [&program, "-m", "ipykernel_launcher", "-f", "{connection_file}"].map(str::to_owned).to_vec(),
            variables: BTreeMap::new(),
            by_message: false,
        });
    }
    Err(missing(name, &specs))
}

/// What is said when there is no kernel `name`.
pub fn missing(name: &str, specs: &[KernelSpec]) -> KernelError {
    let help = match specs {
        [] => msg!("no kernel is installed: {HOW_TO_GET}", HOW_TO_GET = Message::word(HOW_TO_GET)),
        specs => {
            let names = Message::list(Joint::Item, specs.iter().map(|spec| Message::text(format!("`{}`", spec.name))));
            msg!(
                "these are installed: {names}; choose one with `session.kernel`; {HOW_TO_GET}",
                HOW_TO_GET = Message::word(HOW_TO_GET)
            )
        }
    };
    KernelError { code: "no-kernel", message: msg!("there is no kernel `{name}`"), help: Some(help) }
}

/// The Python that counts: that of the virtual environment, else the first one on the search path.
pub fn python(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| set(variables, name));
    let inside = environments.map(|prefix| prefix.join("bin").join("python"));
    let path = variables.get("PATH").map(String::as_str).unwrap_or_default();
    let on_path = || std::env::split_paths(OsStr::new(path)).collect::<Vec<_>>();
    let outside = on_path().into_iter().map(|directory| directory.join("python3"));
    let named = on_path().into_iter().map(|directory| directory.join("python"));
    inside.chain(outside).chain(named).find(|program| program.is_absolute() && program.is_file())
}

/// Where Jupyter keeps data for these variables, the nearest first; what the machine has for everybody comes after it.
fn data_directories(variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    if let Some(paths) = variables.get("JUPYTER_PATH") {
        found.extend(std::env::split_paths(OsStr::new(paths)));
    }
    let shared = |prefix: PathBuf| prefix.join("share").join("jupyter");
    found.extend(["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| set(variables, name)).map(shared));
    let home = set(variables, "HOME");
    let own = set(variables, "JUPYTER_DATA_DIR").or_else(|| {
        if cfg!(target_os = "macos") {
            return Some(home.as_ref()?.join("Library").join("Jupyter"));
        }
        let data = set(variables, "XDG_DATA_HOME").or_else(|| Some(home.as_ref()?.join(".local").join("share")))?;
        Some(data.join("jupyter"))
    });
    found.extend(own);
    if let Some(python) = python(variables) {
        // Of a link to an interpreter, the directory of the link counts before the one that it leads to.
        let real = std::fs::canonicalize(&python).unwrap_or_default();
        let prefixes = [python, real].map(|program| program.parent().and_then(Path::parent).map(Path::to_path_buf));
        found.extend(prefixes.into_iter().flatten().map(shared));
    }
    // A directory that is relative to where somebody happens to stand is nothing that was installed.
    found.retain(|directory| directory.is_absolute());
    found
}

fn set(variables: &BTreeMap<String, String>, name: &str) -> Option<PathBuf> {
    variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn read(name: &str, directory: &Path, data: &Path) -> Option<KernelSpec> {
    let mut text = String::new();
    let file = std::fs::File::open(directory.join("kernel.json")).ok()?;
    file.take(MOST_SPEC_BYTES).read_to_string(&mut text).ok()?;
    let written: Written = serde_json::from_str(&text).ok()?;
    let mut argv: Vec<String> =
        written.argv.iter().map(|part| part.replace("{resource_dir}", &directory.to_string_lossy())).collect();
    let program = argv.first_mut()?;
    // `python` in a spec means the one that the spec was installed with, not the first on the search path.
    if program.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
        && let Some(prefix) = data.parent().and_then(Path::parent)
        && let beside = prefix.join("bin").join(&*program)
        && beside.is_file()
    {
        *program = beside.to_string_lossy().into_owned();
    }
    Some(KernelSpec {
        name: name.to_owned(),
        display_name: if written.display_name.is_empty() { name.to_owned() } else { written.display_name },
        argv,
        variables: written.env,
        by_message: written.interrupt_mode == "message",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_spec(prefix: &Path, name: &str, json: &str) {
        let directory = prefix.join("share/jupyter/kernels").join(name);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("kernel.json"), json).unwrap();
    }

    fn variables(pairs: &[(&str, &Path)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.to_string_lossy().into_owned())).collect()
    }

    /// [`find`] without what this machine has for everybody.
    fn found(name: &str, variables: &BTreeMap<String, String>) -> Result<KernelSpec, KernelError> {
        find_in(installed_in(data_directories(variables)), name, variables)
    }

    #[test]
    fn a_virtual_environment_comes_before_the_search_path() {
        let root = tempfile::tempdir().unwrap();
        let (near, far) = (root.path().join("near"), root.path().join("far"));
        for prefix in [&near, &far] {
            std::fs::create_dir_all(prefix.join("bin")).unwrap();
            std::fs::write(prefix.join("bin/python3"), "").unwrap();
            std::fs::write(prefix.join("bin/python"), "").unwrap();
        }
        with_spec(&near, "python3", r#"{"argv": ["python", "-m", "x", "{connection_file}"], "display_name": "Near"}"#);
        with_spec(&far, "Python3", r#"{"argv": ["python"], "display_name": "Far"}"#);
        with_spec(&far, "other", r#"{"argv": ["run", "{resource_dir}"], "interrupt_mode": "message"}"#);
        let inside = variables(&[("VIRTUAL_ENV", &near), ("PATH", &far.join("bin"))]);
        let python = found("python3", &inside).unwrap();
        assert_eq!((python.display_name.as_str(), python.by_message), ("Near", false));
        assert_eq!(python.argv.first().unwrap(), &near.join("bin/python").to_string_lossy());
        let outside = variables(&[("PATH", &far.join("bin"))]);
        assert_eq!(found("python3", &outside).unwrap().display_name, "Far");
        let other = found("Other", &outside).unwrap();
        assert!(other.by_message && other.argv.get(1).unwrap().ends_with("kernels/other"), "{other:?}");
    }

    #[test]
    fn python3_needs_no_spec_where_there_is_a_python() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("bin")).unwrap();
        std::fs::write(root.path().join("bin/python3"), "").unwrap();
        let spec = found("python3", &variables(&[("PATH", &root.path().join("bin"))])).unwrap();
        assert_eq!(spec.argv.get(2).map(String::as_str), Some("ipykernel_launcher"));
    }

    #[test]
    fn a_missing_kernel_is_told_with_those_that_there_are_and_how_to_get_one() {
        let root = tempfile::tempdir().unwrap();
        with_spec(root.path(), "ir", r#"{"argv": ["R"]}"#);
        with_spec(root.path(), "broken", r#"{"argv": "#);
        let jupyter = root.path().join("share/jupyter");
        let error = found("julia", &variables(&[("JUPYTER_PATH", &jupyter)])).unwrap_err();
        let help = error.help.unwrap();
        assert_eq!(error.code, "no-kernel");
        assert_eq!(error.message, "there is no kernel `julia`");
        assert!(
            help.to_string().contains("`ir`")
                && help.to_string().contains("pip install ipykernel")
                && !help.to_string().contains("broken"),
            "{help}"
        );
    }
}
