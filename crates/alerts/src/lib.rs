//! How people are told: messages to a Slack-compatible webhook. Decides neither what is told nor when; keeps nothing.

mod block;
mod slack;
mod webhook;

pub use crate::slack::SlackAlerter;
pub use crate::webhook::InvalidWebhook;
