//! Client and server of different releases: told once a day for each server, by whatever command meets it.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};

use crate::command::version::VERSION;
use crate::private_file::PrivateFile;
use crate::sanitize::one_line;
use crate::session::Session;
use crate::terminal::Tone;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Whether two versions are of different releases: patches go together.
pub(crate) fn differs(client: &str, server: &str) -> bool {
    let release = |version: &str| version.split('.').take(2).map(str::to_owned).collect::<Vec<_>>();
    release(client) != release(server)
}

impl Session {
    /// Tells that the server is of another release, unless that was told today.
    pub(crate) fn remark_on_version(&self) {
        if self.global.quiet > 0 || self.environment.get("CI").is_some_and(|ci| ci != "false") {
            return;
        }
        let Some(client) = self.asked.lock().expect("no panic holds it").clone() else { return };
        let (Some(server), endpoint) = (client.server_version(), client.endpoint().to_string()) else { return };
        if differs(VERSION, &server) && self.is_first_today(&endpoint) {
            let text =
                format!("This client is version {VERSION}, the server at {endpoint} is {server}: use the same release on both sides.");
            self.note(Tone::Warning, &one_line(&text));
        }
    }

    /// Whether this server's skew was not told for a day. What cannot be remembered would be told by every command, and so is not told.
    fn is_first_today(&self, endpoint: &str) -> bool {
        let Some(directory) = self.environment.runvoy_directory().map(|directory| directory.join("skew")) else { return false };
        let mut hasher = DefaultHasher::new();
        endpoint.hash(&mut hasher);
        let (path, now) = (directory.join(format!("{:016x}", hasher.finish())), self.now().0);
        let told: Option<i64> = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        // A clock that was set back must not silence it for longer than a day.
        if told.is_some_and(|told| (0..DAY_MS).contains(&now.saturating_sub(told))) {
            return false;
        }
        let kept = fs::create_dir_all(&directory).and_then(|()| PrivateFile::prepare(&path)?.write(&format!("{now}\n")));
        kept.is_ok()
    }
}
