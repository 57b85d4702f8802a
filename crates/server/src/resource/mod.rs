//! One file per resource, and the one table of all routes. A handler parses, calls the engine once and renders; it decides nothing.

mod access;
mod alert;
mod audit;
mod backup;
mod claim;
mod cost;
mod doctor;
mod document;
mod dry_run;
mod event;
mod event_log;
mod execution;
mod group;
mod health;
mod image;
mod job;
mod key;
mod kill;
mod link;
mod list;
mod lock;
mod log;
mod metric;
mod page;
mod playbook;
mod queue;
mod reconcile;
mod recovery;
mod rule;
mod run;
mod sealing_key;
mod search;
mod secret;
mod signing_key;
mod socket;
mod task_health;
mod trace;
mod user;
mod whoami;
mod worker;

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
    event_log::add(&mut routes);
    kill::add(&mut routes);
    socket::add(&mut routes);
    link::add(&mut routes);
    lock::add(&mut routes);
    job::add(&mut routes);
    queue::add(&mut routes);
    worker::add(&mut routes);
    cost::add(&mut routes);
    image::add(&mut routes);
    secret::add(&mut routes);
    sealing_key::add(&mut routes);
    signing_key::add(&mut routes);
    whoami::add(&mut routes);
    claim::add(&mut routes);
    user::add(&mut routes);
    key::add(&mut routes);
    group::add(&mut routes);
    rule::add(&mut routes);
    access::add(&mut routes);
    recovery::add(&mut routes);
    audit::add(&mut routes);
    doctor::add(&mut routes);
    task_health::add(&mut routes);
    alert::add(&mut routes);
    reconcile::add(&mut routes);
    trace::add(&mut routes);
    playbook::add(&mut routes);
    backup::add(&mut routes);
    document::add(&mut routes);
    metric::add(&mut routes);
    page::add(&mut routes);
    routes
}
