//! Hostile servers: models and planners of behaviors that answer with anything at all, slowly, endlessly, or not.

mod behaviors;
mod http;
mod models;
mod replies;

use crate::attack::Attack;

pub const ATTACKS: &[Attack] = &[
    Attack { name: "servers/http", run: models::http },
    Attack { name: "servers/replies", run: models::replies },
    Attack { name: "servers/token counts", run: models::counts },
    Attack { name: "servers/behaviors", run: behaviors::behaviors },
];
