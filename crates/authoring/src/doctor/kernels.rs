//! Checks which Jupyter kernels are installed, and whether the project allows code execution.

use crate::doctor::finding::DoctorFinding;
use bcc_engine::environment::Environment;
use bcc_engine::host_services::permissions;
use bcc_engine::program_environment::kernel_variables;
use bcc_engine::project::Project;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::notebook::kernel::specs::{find, installed};

const MAX_LISTED: usize = 20;

/// The kernel of scripts that do not name one.
const USUAL: &str = "python3";

/// Reports the installed kernels, and whether the default one is among them.
pub(crate) fn kernels(project: &Project, environment: &Environment) -> Vec<DoctorFinding> {
    if cfg!(not(feature = "jupyter")) {
        let note =
            DoctorFinding::note("kernels", "this bcc-script was built without kernel support: it cannot run code");
        return vec![note.with_help("install it with its default features, or build it with `--features jupyter`")];
    }
    let variables = kernel_variables(&project.config, environment);
    let specs = installed(&variables);
    let mut names: Vec<Message> =
        specs.iter().take(MAX_LISTED).map(|spec| Message::text(format!("`{}`", spec.name))).collect();
    if specs.len() > MAX_LISTED {
        names.push(Message::text("…"));
    }
    let usual = find(USUAL, &variables);
    vec![match (names.as_slice(), usual) {
        ([], Ok(_)) => {
            let note = DoctorFinding::note("kernels", "no kernel is installed, but Python was found and may have one");
            note.with_help(
                "scripts with code need a kernel: `python3 -m pip install ipykernel` makes sure that one is installed",
            )
        }
        ([], Err(_)) => DoctorFinding::note("kernels", "no kernel is installed: scripts cannot run code")
            .with_help("`python3 -m pip install ipykernel` installs one"),
        (names, Ok(_)) => DoctorFinding::ok(
            "kernels",
            msg!("these kernels are installed: {}", Message::list(Joint::Item, names.iter().cloned())),
        ),
        (names, Err(_)) => {
            let message = msg!(
                "`{USUAL}` is not installed, but these kernels are: {}",
                Message::list(Joint::Item, names.iter().cloned())
            );
            let help = "select one with `session.kernel` in a script; `python3 -m pip install ipykernel` installs the default one";
            DoctorFinding::note("kernels", message).with_help(help)
        }
    }]
}

/// Whether the scripts of the project may run code; `None` if the project does not ask for it.
pub(crate) fn allowed(project: &Project, environment: &Environment) -> Option<DoctorFinding> {
    let permissions = permissions(project, environment);
    if permissions.allowed.contains("exec") {
        return Some(DoctorFinding::ok("exec", "scripts of this project may run code in a kernel"));
    }
    // A permission that is granted but not trusted is reported together with the trust of the configuration.
    let denied = permissions.check("exec").err().filter(|_| permissions.withheld.contains("exec"))?;
    Some(DoctorFinding::note("exec", denied.message).with_help(denied.help))
}
