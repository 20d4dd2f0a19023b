//! Attacks that the program does not withstand yet. One that `BCC_CAMPAIGN_ATTACK` names is carried out all the same.

/// The name of an attack, and why it is left out.
pub const NOT_YET: &[(&str, &str)] = &[
    ("clones/interrupt", "templates take all memory before anybody interrupts"),
    ("clones/links", "templates and configurations that are links out of the project are read"),
    ("clones/names", "bidi overrides are shown as they are"),
    ("clones/schemas", "doubled references are followed without end"),
    ("clones/stores", "a session of another project runs its command"),
    ("clones/templates", "filters take all memory"),
    ("disks/full device", "answers are taken though nothing can be written to standard output"),
    ("disks/store taken away", "answers are acknowledged though the store is gone"),
    ("kills/command", "a session is refused for a process that is gone"),
    ("servers/token counts", "sums of tokens overflow"),
    ("stores/damaged log", "answers disappear behind a damaged frame of the log"),
];
