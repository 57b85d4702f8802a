//! The HTTP, WebSocket and RPC edge over the engine: routes, credentials, bodies, errors, listeners. It decides nothing about executions; every
//! rule about those is the engine's. A route can only be added with its authorization rule (`route.rs`).

mod address;
mod answer;
mod app;
mod attempt;
mod body;
mod bundle;
mod call;
mod connections;
mod cors;
mod credential;
mod drain;
mod entry;
mod fault;
mod json_words;
mod limit;
mod link;
mod listen;
mod log;
mod meter;
mod openapi;
mod operation;
mod pager;
mod peer;
mod preface;
mod proxy;
mod query;
mod request_id;
mod request_line;
mod resource;
mod room;
mod route;
mod rpc;
mod sealed_hash;
mod slip;
mod stall;
mod stream;
mod ticket;
mod tls;
mod traffic;
mod view;
mod vigil;

pub use crate::app::{App, BackupFault, Host, MetricsText, ServerConfig, ServerParts};
pub use crate::listen::{Limits, ListenError, Listener, serve};
pub use crate::peer::{Connection, Peer};
pub use crate::proxy::{InvalidNetwork, Network};
pub use crate::route::{Rule, TableRow};
pub use crate::rpc::RpcRule;
#[doc(hidden)]
pub use crate::rpc::fuzz::unpack_call;
pub use crate::tls::TlsError;
