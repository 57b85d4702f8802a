//! Fuzzing on stable Rust: a seeded mutation engine over a kept corpus, and an allocator that counts. Targets are in `tests/`.

pub mod allocator;
pub mod mutation;
