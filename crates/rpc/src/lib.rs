//! The RPC messages and stubs of `proto/`, made from those files and checked in: see `tests/generated.rs`. No behaviour of its own.
#![expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "what is generated is not ours to word"
)]

pub use buffa;
pub use buffa_types::google::protobuf;
pub use connectrpc;

include!("generated/mod.rs");
