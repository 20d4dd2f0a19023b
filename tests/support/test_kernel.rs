//! Finds a real kernel for tests (CONTRIBUTING.md, "A kernel for the tests").

use std::path::{Path, PathBuf};

/// The Python for the kernels of tests: `BCC_TEST_PYTHON`, else that of `.ci/kernel/run`, else `python3` when it has ipykernel.
/// Without one, prints a note and returns `None`; panics if `BCC_REQUIRE_KERNEL` is set.
#[allow(clippy::print_stderr)] // printed where there is no kernel
pub fn kernel_python() -> Option<PathBuf> {
    let configured = std::env::var_os("BCC_TEST_PYTHON").filter(|configured| !configured.is_empty()).map(PathBuf::from);
    let project_python = Path::new(crate::ROOT).join("target").join("jupyter").join("bin").join("python");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("python3"));
    let found = configured.into_iter().chain([project_python]).chain(on_path).find(|python| has_kernel(python));
    if found.is_none() {
        let reason = "no Python with ipykernel: `.ci/kernel/run` makes one in target/jupyter";
        assert!(!is_required(), "{reason}");
        eprintln!("passes without a kernel: {reason}");
    }
    found
}

/// The Python for kernels, if it has these modules as well. Otherwise the same as without a kernel.
#[allow(clippy::print_stderr)] // printed where there are no modules
pub fn python_with(modules: &[&str]) -> Option<PathBuf> {
    let python = kernel_python()?;
    let find = "import sys, importlib.util as u; print([m for m in sys.argv[1:] if not u.find_spec(m)])";
    let output = std::process::Command::new(&python).args(["-c", find]).args(modules).output().ok()?;
    let missing = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if missing == "[]" {
        return Some(python);
    }
    let reason = format!("no Python with {missing}: `.ci/kernel/run` makes one in target/jupyter");
    assert!(!is_required(), "{reason}");
    eprintln!("passes without a kernel: {reason}");
    None
}

/// Whether the tests may not pass without a kernel.
fn is_required() -> bool {
    std::env::var_os("BCC_REQUIRE_KERNEL").is_some_and(|value| !value.is_empty() && value != "0")
}

/// The environment in which the kernel `python3` uses `python`.
pub fn kernel_variables(python: &Path) -> [(&'static str, String); 2] {
    let prefix = python.parent().and_then(Path::parent).unwrap_or(python);
    let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", prefix.display());
    [("VIRTUAL_ENV", prefix.display().to_string()), ("PATH", path)]
}

fn has_kernel(python: &Path) -> bool {
    let output = std::process::Command::new(python).args(["-c", "import ipykernel_launcher"]).output();
    output.is_ok_and(|output| output.status.success())
}
