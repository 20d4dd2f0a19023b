//! The environment variables of the kernels and commands of a project: a fixed list, and what its configuration names
//! (docs/kernel.md). Everything else stays hidden, whatever it is called.

use std::collections::BTreeMap;

use crate::config::config::Config;
use crate::environment::Environment;
use crate::project::Project;
use bcc_runtime::effects::permissions::ProgramVariables;

/// What programs need to find themselves, their files and the language of the person.
const GENERAL: [&str; 15] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
];

/// The directories of the XDG base directory specification.
const DIRECTORIES: [&str; 7] = [
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// What interpreters and kernels need to find their installation and their packages.
const INTERPRETERS: [&str; 27] = [
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "CONDA_EXE",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONNOUSERSITE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "IPYTHONDIR",
    "JUPYTER_PATH",
    "JUPYTER_DATA_DIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_CONFIG_PATH",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTER_PLATFORM_DIRS",
    "JUPYTER_PREFER_ENV_PATH",
    "MPLCONFIGDIR",
    "R_HOME",
    "R_LIBS_USER",
    "JULIA_DEPOT_PATH",
    "JULIA_PROJECT",
];

/// The certificates to accept.
const CERTIFICATES: [&str; 4] = ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"];

/// The proxies, in lower or upper case, unless one contains a user name or a password, with or without a scheme.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// Whether every program gets this variable.
fn is_usual(name: &str, value: &str) -> bool {
    let fixed = GENERAL.iter().chain(&DIRECTORIES).chain(&INTERPRETERS).chain(&CERTIFICATES);
    let is_proxy = PROXIES.contains(&name) || PROXIES.contains(&name.to_ascii_uppercase().as_str());
    fixed.into_iter().any(|usual| *usual == name)
        || name.strip_prefix("LC_").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_uppercase()))
        || is_proxy && !value.contains('@')
}

/// How Plotly in a kernel shows figures.
const PLOTLY_RENDERER: &str = "PLOTLY_RENDERER";

/// The variables for the kernel of a session.
pub(crate) fn session_kernel_variables(config: &Config, environment: &Environment) -> BTreeMap<String, String> {
    let mut variables = kernel_variables(config, environment);
    // Plotly looks for variables of the programs that it knows, and assumes JupyterLab otherwise, which draws figures from their data.
    // With this, their HTML is there too, so that exports can show them.
    variables.entry(PLOTLY_RENDERER.to_owned()).or_insert_with(|| "plotly_mimetype+notebook".to_owned());
    variables
}

/// The variables for kernels, which include those that `[kernel] env` names.
pub fn kernel_variables(config: &Config, environment: &Environment) -> BTreeMap<String, String> {
    let named = |name: &str| name == PLOTLY_RENDERER || config.kernel.env.iter().any(|named| named == name);
    environment.only(|name, value| is_usual(name, value) || named(name))
}

/// The variables for commands. Those that the `env` of an action type names go only to its commands.
pub(crate) fn command_variables(project: &Project, environment: &Environment) -> ProgramVariables {
    let kinds = project.config.kinds.iter().filter(|(_, kind)| !kind.env.is_empty());
    let of_kinds =
        kinds.map(|(name, kind)| (name.clone(), environment.only(|name, _| kind.env.iter().any(|n| n == name))));
    ProgramVariables { common: environment.only(is_usual), of_kinds: of_kinds.collect() }
}

/// The variables for a server of tools: the usual ones, without those that it is given itself.
pub(crate) fn server_variables(environment: &Environment) -> BTreeMap<String, String> {
    environment.only(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_what_they_need_and_nothing_else() {
        for (name, value) in [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("XDG_DATA_HOME", "/x"),
            ("VIRTUAL_ENV", "/venv"),
            ("SSL_CERT_FILE", "/c.pem"),
            ("https_proxy", "http://proxy:8080"),
            ("HTTP_PROXY", "proxy:8080"),
        ] {
            assert!(is_usual(name, value), "{name}");
        }
        for (name, value) in [
            ("OPENAI_API_KEY", "k"),
            ("AWS_PROFILE", "work"),
            ("DATABASE_URL", "postgres://host/x"),
            ("JUPYTER_TOKEN", "t"),
            ("LC_secret", "x"),
            ("Https_Proxy_Password", "x"),
            ("https_proxy", "http://ann:geheim@proxy:8080"),
            ("HTTP_PROXY", "ann:geheim@proxy:8080"),
            ("SSH_AUTH_SOCK", "/tmp/s"),
            ("LD_PRELOAD", "/tmp/x.so"),
            ("XDG_SECRET", "x"),
            ("path", "/bin"),
        ] {
            assert!(!is_usual(name, value), "{name}");
        }
    }
}
