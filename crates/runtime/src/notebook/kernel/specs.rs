//! The installed Jupyter kernel specs, and the lookup of a spec by name.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
#[cfg(feature = "jupyter")]
use std::process::Stdio;

use serde::Deserialize;

use crate::notebook::kernel::contract::KernelError;
#[cfg(feature = "jupyter")]
use crate::notebook::kernel::location::KernelLocation;

/// The maximum size of a `kernel.json` that is read, in bytes.
const MAX_SPEC_BYTES: u64 = 256 * 1024;

/// The maximum number of specs of one directory that are read.
const MAX_SPECS: usize = 200;

/// The default kernel name of scripts, which works for an installed Python even without a spec.
const PYTHON: &str = "python3";

/// The help on how to install a kernel.
const HOW_TO_GET: &str = "`python3 -m pip install ipykernel` installs one for the first `python3` that is found";

/// How to start a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSpec {
    /// The name in scripts.
    pub name: String,
    /// The display name.
    pub display_name: String,
    /// The program and its arguments; `{connection_file}` stands for the path of the connection file.
    pub argv: Vec<String>,
    /// Additional environment variables.
    pub variables: BTreeMap<String, String>,
    /// Whether it is interrupted by a message instead of SIGINT.
    pub interrupt_by_message: bool,
}

#[derive(Deserialize)]
struct SpecFile {
    argv: Vec<String>,
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    interrupt_mode: String,
}

/// All installed kernel specs with unique names: the first directory that contains a name is used.
pub fn installed(variables: &BTreeMap<String, String>) -> Vec<KernelSpec> {
    let system = ["/usr/local/share/jupyter", "/usr/share/jupyter"].map(PathBuf::from);
    installed_in(data_directories(variables).into_iter().chain(system))
}

fn installed_in(directories: impl IntoIterator<Item = PathBuf>) -> Vec<KernelSpec> {
    let mut found: BTreeMap<String, KernelSpec> = BTreeMap::new();
    for directory in directories {
        let Ok(entries) = std::fs::read_dir(directory.join("kernels")) else { continue };
        for entry in entries.flatten().take(MAX_SPECS) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Jupyter ignores the case of names.
            let name = name.to_lowercase();
            if let (false, Some(spec)) = (found.contains_key(&name), read(&name, &entry.path(), &directory)) {
                found.insert(name, spec);
            }
        }
    }
    found.into_values().collect()
}

/// The spec with this name.
/// Errors: There is no such spec. The help explains how to install one and lists the installed ones.
pub fn find(name: &str, variables: &BTreeMap<String, String>) -> Result<KernelSpec, KernelError> {
    find_in(installed(variables), name, variables)
}

/// Checks without starting a kernel that it could be started: its program is there, and ipykernel if no spec says what it starts.
/// Errors: As [`find`]; the program is missing.
#[cfg(feature = "jupyter")]
pub(crate) fn check_installed(name: &str, location: &KernelLocation) -> Result<(), KernelError> {
    let specs = installed(&location.variables);
    let has_spec = specs.iter().any(|spec| spec.name == name.to_lowercase());
    let spec = find_in(specs.clone(), name, &location.variables)?;
    let program = spec.argv.first().map(Path::new).unwrap_or(Path::new(""));
    if program.is_absolute() && !program.is_file() {
        return Err(missing(name, &specs));
    }
    if has_spec {
        return Ok(());
    }
    // Looks for the module without running it.
    let probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('ipykernel_launcher') is None)";
    let mut command = std::process::Command::new(program);
    command.args(["-c", probe]).current_dir(&location.directory).env_clear().envs(&location.variables);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        // Python ends with 1 if it is true, and with another code if it could not look.
        Ok(status) if status.code() == Some(1) => Err(missing(name, &specs)),
        _ => Ok(()),
    }
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
            interrupt_by_message: false,
        });
    }
    Err(missing(name, &specs))
}

/// The error if there is no kernel `name`.
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

/// The Python interpreter: that of the virtual environment, else the first one on the search path.
pub fn python(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| path_variable(variables, name));
    let inside = environments.map(|prefix| prefix.join("bin").join("python"));
    let path = variables.get("PATH").map(String::as_str).unwrap_or_default();
    let on_path = || std::env::split_paths(OsStr::new(path)).collect::<Vec<_>>();
    let outside = on_path().into_iter().map(|directory| directory.join("python3"));
    let named = on_path().into_iter().map(|directory| directory.join("python"));
    inside.chain(outside).chain(named).find(|program| program.is_absolute() && program.is_file())
}

/// The data directories of Jupyter for these variables, in order of priority, without the system-wide ones.
fn data_directories(variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    if let Some(paths) = variables.get("JUPYTER_PATH") {
        found.extend(std::env::split_paths(OsStr::new(paths)));
    }
    let shared = |prefix: PathBuf| prefix.join("share").join("jupyter");
    found.extend(["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| path_variable(variables, name)).map(shared));
    found.extend(own_data_directory(variables));
    if let Some(python) = python(variables) {
        // For a symbolic link to an interpreter, the directory of the link comes before that of its target.
        let real = std::fs::canonicalize(&python).unwrap_or_default();
        let prefixes = [python, real].map(|program| program.parent().and_then(Path::parent).map(Path::to_path_buf));
        found.extend(prefixes.into_iter().flatten().map(shared));
    }
    // Relative directories are not installation directories.
    found.retain(|directory| directory.is_absolute());
    found
}

/// The data directory of the user.
fn own_data_directory(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let home = || path_variable(variables, "HOME");
    path_variable(variables, "JUPYTER_DATA_DIR").or_else(|| {
        if cfg!(target_os = "macos") {
            return Some(home()?.join("Library").join("Jupyter"));
        }
        let data = path_variable(variables, "XDG_DATA_HOME").or_else(|| Some(home()?.join(".local").join("share")))?;
        Some(data.join("jupyter"))
    })
}

/// The directory in which Jupyter puts the connection files of running kernels.
#[cfg(feature = "jupyter")]
pub(crate) fn runtime_directory(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let given = path_variable(variables, "JUPYTER_RUNTIME_DIR");
    given.or_else(|| Some(own_data_directory(variables)?.join("runtime")))
}

fn path_variable(variables: &BTreeMap<String, String>, name: &str) -> Option<PathBuf> {
    variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Opens a regular file, and no pipe or device.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<std::fs::File> {
    // Without `NONBLOCK`, opening a pipe would block until there is a writer.
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::ErrorKind::InvalidInput.into()),
    }
}

fn read(name: &str, directory: &Path, data: &Path) -> Option<KernelSpec> {
    let mut text = String::new();
    let file = open_regular(&directory.join("kernel.json")).ok()?;
    file.take(MAX_SPEC_BYTES).read_to_string(&mut text).ok()?;
    let spec_file: SpecFile = serde_json::from_str(&text).ok()?;
    let mut argv: Vec<String> =
        spec_file.argv.iter().map(|part| part.replace("{resource_dir}", &directory.to_string_lossy())).collect();
    let program = argv.first_mut()?;
    // `python` in a spec means the interpreter with which the spec was installed, not the first one on the search path.
    if program.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
        && let Some(prefix) = data.parent().and_then(Path::parent)
        && let sibling = prefix.join("bin").join(&*program)
        && sibling.is_file()
    {
        *program = sibling.to_string_lossy().into_owned();
    }
    Some(KernelSpec {
        name: name.to_owned(),
        display_name: if spec_file.display_name.is_empty() { name.to_owned() } else { spec_file.display_name },
        argv,
        variables: spec_file.env,
        interrupt_by_message: spec_file.interrupt_mode == "message",
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

    /// [`find`] without the system-wide directories.
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
        assert_eq!((python.display_name.as_str(), python.interrupt_by_message), ("Near", false));
        assert_eq!(python.argv.first().unwrap(), &near.join("bin/python").to_string_lossy());
        let outside = variables(&[("PATH", &far.join("bin"))]);
        assert_eq!(found("python3", &outside).unwrap().display_name, "Far");
        let other = found("Other", &outside).unwrap();
        assert!(other.interrupt_by_message && other.argv.get(1).unwrap().ends_with("kernels/other"), "{other:?}");
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
    fn the_error_for_a_missing_kernel_lists_installed_ones_and_how_to_install_one() {
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
