//! Playbooks of the client: YAML files beside a project or in the home directory. A file says what to run; the server decides whether
//! its reader may. The real boundary is a playbook that was pushed to the server.

mod file;
mod shelf;

pub(crate) use file::PlaybookFile;
pub(crate) use shelf::{Found, Place, Shelf};
