//! Hostile clones: projects of somebody else, in which a person who trusts nothing runs the commands. Nothing outside of the project is
//! read to anybody or changed, nothing of the project runs, and every command ends.

mod bombs;
pub mod code;
mod links;
mod names;
mod project;

use crate::attack::Attack;

pub const ATTACKS: &[Attack] = &[
    Attack { name: "clones/links", run: links::links },
    Attack { name: "clones/special files", run: links::special_files },
    Attack { name: "clones/documents", run: bombs::documents },
    Attack { name: "clones/templates", run: bombs::templates },
    Attack { name: "clones/schemas", run: bombs::schemas },
    Attack { name: "clones/interrupt", run: bombs::interrupt },
    Attack { name: "clones/names", run: names::names },
    Attack { name: "clones/configuration", run: code::configuration },
    Attack { name: "clones/stores", run: code::foreign_store },
];
