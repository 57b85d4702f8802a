//! The RPC messages and stubs of `proto/`, made from those files and checked in: see `tests/generated.rs`. No behaviour of its own.

pub use buffa;
pub use buffa_types::google::protobuf;
pub use connectrpc;

include!("generated/mod.rs");
