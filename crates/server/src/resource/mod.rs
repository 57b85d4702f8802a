//! One file per resource, and the one table of all routes. A handler parses, calls the engine once and renders; it decides nothing.

mod backup;
mod doctor;
mod document;
mod event;
mod execution;
mod health;
mod kill;
mod list;
mod lock;
mod log;
mod metric;
mod page;
mod run;
mod search;
mod socket;
mod whoami;

use crate::route::Routes;

/// Every route there is.
pub(crate) fn all() -> Routes {
    let mut routes = Routes::default();
    health::add(&mut routes);
    run::add(&mut routes);
    list::add(&mut routes);
    execution::add(&mut routes);
    log::add(&mut routes);
    search::add(&mut routes);
    event::add(&mut routes);
    kill::add(&mut routes);
    socket::add(&mut routes);
    lock::add(&mut routes);
    whoami::add(&mut routes);
    doctor::add(&mut routes);
    backup::add(&mut routes);
    document::add(&mut routes);
    metric::add(&mut routes);
    page::add(&mut routes);
    routes
}
