//! A real kernel for tests, where there is one (CONTRIBUTING.md, "A kernel for the tests").

use std::path::{Path, PathBuf};

/// The Python that the tests' kernels run in: `BCC_TEST_PYTHON`, else that of `.ci/kernel/run`, else `python3` when it has
/// ipykernel. Where there is none, says so and gives none, unless `BCC_REQUIRE_KERNEL` is set: then it panics.
#[allow(clippy::print_stderr)] // said where there is no kernel
pub fn kernel_python() -> Option<PathBuf> {
    let given = std::env::var_os("BCC_TEST_PYTHON").filter(|given| !given.is_empty()).map(PathBuf::from);
    let made = Path::new(crate::ROOT).join("target").join("jupyter").join("bin").join("python");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("python3"));
    let found = given.into_iter().chain([made]).chain(on_path).find(|python| has_kernel(python));
    if found.is_none() {
        let why = "no Python with ipykernel: `.ci/kernel/run` makes one in target/jupyter";
        assert!(std::env::var_os("BCC_REQUIRE_KERNEL").is_none_or(|value| value.is_empty() || value == "0"), "{why}");
        eprintln!("passes without a kernel: {why}");
    }
    found
}

/// What makes a kernel of `python` the one that `python3` means.
pub fn kernel_variables(python: &Path) -> [(&'static str, String); 2] {
    let prefix = python.parent().and_then(Path::parent).unwrap_or(python);
    let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", prefix.display());
    [("VIRTUAL_ENV", prefix.display().to_string()), ("PATH", path)]
}

fn has_kernel(python: &Path) -> bool {
    let asked = std::process::Command::new(python).args(["-c", "import ipykernel_launcher"]).output();
    asked.is_ok_and(|asked| asked.status.success())
}
