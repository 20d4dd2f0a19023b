//! `--version`: the release and its built-in parts, without details of the build machine.

use std::sync::LazyLock;

use bcc_engine::config::model_table::ProviderKind;
use bcc_lang::template::builtin::schemes;
use bcc_lang::template::layers::DEFAULT_SCHEME;
use bcc_runtime::actions::KINDS;
use bcc_store::sqlite::open::LAYOUT;

/// The text of `--version`: the release and its built-in parts. `-V` prints only the release.
pub static LONG: LazyLock<String> = LazyLock::new(long);

fn long() -> String {
    let providers: Vec<&str> = ProviderKind::ALL.iter().map(|kind| kind.name()).collect();
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
    let schemes: Vec<&str> = std::iter::once(DEFAULT_SCHEME).chain(schemes()).collect();
    let rows = [
        ("kinds", kinds.join(", ")),
        ("providers", providers.join(", ")),
        ("templates", format!("minijinja (Jinja2); schemes {}", schemes.join(", "))),
        ("store", format!("SQLite {}, layout {LAYOUT}", bcc_store::sqlite::version())),
        ("terminal", "English, Chinese".to_owned()),
        ("target", target()),
    ];
    let rows: Vec<String> = rows.iter().map(|(name, value)| format!("{name:10} {value}")).collect();
    format!("{}\n{}", env!("CARGO_PKG_VERSION"), rows.join("\n"))
}

fn target() -> String {
    let vendor = if cfg!(target_vendor = "apple") { "apple" } else { "unknown" };
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let libraries = match () {
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "gnu") => "-gnu",
        () => "",
    };
    format!("{}-{vendor}-{system}{libraries}", std::env::consts::ARCH)
}
